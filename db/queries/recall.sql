-- name: MessageRecall :many
-- The messages of a recall with their content, oldest first: (created_at,
-- thread_id, seq). recall_positions says which, and takes the parameters;
-- owner_id, total and has_more are the same in each row, owner_id is empty where
-- the thread asked for does not exist, and id where no message is found. One
-- statement: one snapshot, one round trip.
SELECT
    coalesce((SELECT t.resource_id FROM recall.threads AS t WHERE t.id = @thread_id::text), '')::text AS owner_id,
    coalesce(r.total, 0)::bigint AS total,
    coalesce(r.has_more, false)::boolean AS has_more,
    coalesce(m.id, '')::text AS id,
    coalesce(m.thread_id, '')::text AS thread_id,
    coalesce(m.resource_id, '')::text AS resource_id,
    coalesce(m.seq, 0)::bigint AS seq,
    coalesce(m.role, '')::text AS role,
    coalesce(m.type, '')::text AS type,
    m.content::jsonb AS content,
    coalesce(m.created_at, 'epoch')::timestamptz AS created_at,
    coalesce(r.on_page, false)::boolean AS on_page,
    coalesce(r.included, false)::boolean AS included,
    coalesce(r.tool_call, false)::boolean AS tool_call,
    coalesce(r.context_of, '')::text AS context_of,
    coalesce(r.context_offset, 0)::bigint AS context_offset
FROM recall.recall_positions(
    @thread_id::text,
    @resource_id::text,
    @newest::boolean,
    sqlc.narg('max_rows')::bigint,
    @skip_rows::bigint,
    coalesce(sqlc.narg('starts_at')::timestamptz, '-infinity'),
    coalesce(sqlc.narg('ends_at')::timestamptz, 'infinity'),
    coalesce(sqlc.narg('after_created_at')::timestamptz, '-infinity'),
    @after_thread_id::text,
    @after_seq::bigint,
    coalesce(sqlc.narg('before_created_at')::timestamptz, 'infinity'),
    @before_thread_id::text,
    @before_seq::bigint,
    @has_conditions::boolean,
    (@matching::text)::jsonpath,
    @roles::text[],
    @with_total::boolean,
    @include_ids::text[],
    @include_thread_ids::text[],
    @include_before::bigint[],
    @include_after::bigint[],
    @keep_tool_pairs::boolean
) AS r
LEFT JOIN LATERAL (
    SELECT f.*
    FROM recall.messages AS f
    WHERE f.thread_id = r.thread_id AND f.seq = r.seq
    OFFSET 0
) AS m ON true
ORDER BY r.created_at, r.thread_id, r.seq;

-- name: MessagePage :many
-- The page of a thread when nothing but a page is asked for, which is what most
-- recalls are: the same rows as MessageRecall gives, at a third of its cost. In
-- the direction of the page; the caller asks for one row more, to see whether
-- there are more. The thread's columns are the same in each row, and where no message is
-- found there is one row with an empty id. No row: no such thread.
-- messages_thread_order_idx, threads_pkey.
SELECT
    t.resource_id AS owner_id,
    t.message_count AS total,
    coalesce(m.id, '')::text AS id,
    coalesce(m.seq, 0)::bigint AS seq,
    coalesce(m.role, '')::text AS role,
    coalesce(m.type, '')::text AS type,
    m.content::jsonb AS content,
    coalesce(m.created_at, 'epoch')::timestamptz AS created_at
FROM recall.threads AS t
LEFT JOIN LATERAL (
    (
        SELECT f.*
        FROM recall.messages AS f
        WHERE @newest::boolean
            AND f.thread_id = @thread_id::text
            AND (f.created_at, f.seq) < (coalesce(sqlc.narg('past_created_at')::timestamptz, 'infinity'), @past_seq::bigint)
        ORDER BY f.created_at DESC, f.seq DESC
        LIMIT @max_rows::bigint
    )
    UNION ALL
    (
        SELECT f.*
        FROM recall.messages AS f
        WHERE NOT @newest::boolean
            AND f.thread_id = @thread_id::text
            AND (f.created_at, f.seq) > (coalesce(sqlc.narg('past_created_at')::timestamptz, '-infinity'), @past_seq::bigint)
        ORDER BY f.created_at, f.seq
        LIMIT @max_rows::bigint
    )
) AS m ON true
WHERE t.id = @thread_id::text
ORDER BY
    CASE WHEN @newest::boolean THEN m.created_at END DESC,
    CASE WHEN @newest::boolean THEN m.seq END DESC,
    m.created_at,
    m.seq;
