-- Thread 0 is the large one. Resource 0 owns it beside its share of the others.
-- $1 threads beside the large one, $2 messages of the large one, $3 messages of
-- each other one, $4 resources, $5 threads without messages.
INSERT INTO recall.threads (
    id, resource_id, title, title_source, metadata, message_count, last_seq, created_at, updated_at
)
SELECT
    'thread-' || lpad(i.n::text, 6, '0'),
    'resource-' || lpad((i.n % $4::bigint)::text, 6, '0'),
    'Conversation ' || i.n,
    'user',
    jsonb_build_object('plan', CASE WHEN i.n % 50 = 0 THEN 'enterprise' ELSE 'free' END),
    c.messages,
    c.messages,
    '2025-01-01 00:00:00+00'::timestamptz + i.n * interval '20 minutes',
    '2025-06-01 00:00:00+00'::timestamptz + (i.n * 7919 % 100000) * interval '1 minute'
FROM generate_series(0, $1::bigint + $5::bigint) AS i (n)
CROSS JOIN LATERAL (
    SELECT CASE WHEN i.n = 0 THEN $2::bigint WHEN i.n <= $1::bigint THEN $3::bigint ELSE 0 END AS messages
) AS c
