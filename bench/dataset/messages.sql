-- The messages at the positions $2[i] of the threads $1[i], with the texts $3[i].
-- They go in by time, so that neighbours of a thread lie apart on disk, as in a
-- database that many conversations fill at once. Four in a row share a time.
INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, type, content, created_at, updated_at)
SELECT
    md5(m.thread_id || '/' || m.seq)::uuid::text,
    m.thread_id,
    m.resource_id,
    m.seq,
    CASE WHEN m.seq % 2 = 1 THEN 'user' ELSE 'assistant' END,
    'v2',
    jsonb_build_object(
        'format', 2,
        'parts', CASE
            -- A tool is called at every tenth position and answers four later, but one
            -- in twenty 64 later.
            WHEN m.seq % 10 IN (4, 8) THEN jsonb_build_array(jsonb_build_object(
                'type', 'tool-invocation',
                'toolInvocation', jsonb_build_object(
                    'state', CASE WHEN m.seq % 10 = 4 THEN 'call' ELSE 'result' END,
                    'toolCallId', 'call-' || m.thread_id || '-' || (
                        m.seq - CASE WHEN m.seq % 10 = 4 THEN 0 WHEN m.seq % 200 = 198 THEN 64 ELSE 4 END
                    ),
                    'toolName', 'lookup',
                    'args', jsonb_build_object('order', m.seq)
                )
            ))
            ELSE jsonb_build_array(jsonb_build_object(
                'type', 'text',
                'text', m.text
            ))
        END,
        'metadata', jsonb_strip_nulls(jsonb_build_object(
            'n', m.seq,
            'channel', CASE WHEN m.seq % 2 = 1 THEN 'chat' ELSE 'mail' END,
            -- Rare in the large thread, common in the others.
            'topic', CASE WHEN m.seq % 400 = 0 OR m.thread_id <> 'thread-000000' AND m.seq % 2 = 0 THEN 'refund' END,
            -- Rare everywhere.
            'flag', CASE WHEN m.seq % 400 = 200 AND m.thread_id = 'thread-000000' THEN 'audited' END
        ))
    ),
    m.created_at,
    m.created_at
FROM (
    SELECT
        t.id AS thread_id,
        t.resource_id,
        i.seq,
        i.text,
        t.created_at + i.seq / 4 * interval '1 minute' AS created_at
    FROM unnest($1::text[], $2::bigint[], $3::text[]) AS i (thread_id, seq, text)
    JOIN recall.threads AS t ON t.id = i.thread_id
) AS m
ORDER BY m.created_at, m.thread_id, m.seq
