-- name: MessageRecall :many
-- The messages of a recall with their content, oldest first: (created_at,
-- thread_id, seq). recall_positions says which, and takes the parameters;
-- the thread's owner, total and has_more are the same in each row, and id is empty
-- where no message is found. No row: the thread, or else the resource, is not there
-- or not reached. Included messages that are not reached are none, and looked for
-- only where that can be. One statement: one snapshot, one round trip.
WITH scope AS MATERIALIZED (
    SELECT
        o.owner_id,
        CASE
            WHEN recall.reached('', @reach::text[]) THEN @include_ids::text[]
            ELSE ARRAY(
                SELECT m.id
                FROM unnest(@include_ids::text[]) WITH ORDINALITY AS i (id, n)
                LEFT JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = i.id OFFSET 0) AS m
                    ON recall.reached(m.resource_id, @reach::text[])
                ORDER BY i.n
            )
        END AS include_ids
    FROM (
        SELECT t.resource_id AS owner_id
        FROM recall.threads AS t
        WHERE t.id = @thread_id::text
            AND recall.reached(t.resource_id, @reach::text[])
        UNION ALL
        SELECT ''
        WHERE @thread_id::text = ''
            AND recall.reached(@resource_id::text, @reach::text[])
    ) AS o
)
SELECT
    s.owner_id::text AS owner_id,
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
FROM scope AS s
CROSS JOIN LATERAL recall.recall_positions(
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
    s.include_ids,
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

-- name: MessageSearch :many
-- A recall with hits: MessageRecall, to which the messages that answer a
-- question are added as if they had been included by id, in the order of
-- recall_positions. search_positions says which they are. The hits lie in the
-- thread where hits_in_thread, else in all threads of its owner, or of resource_id
-- where there is no thread.
WITH scope AS MATERIALIZED (
    SELECT
        o.owner_id,
        CASE
            WHEN recall.reached('', @reach::text[]) THEN @include_ids::text[]
            ELSE ARRAY(
                SELECT m.id
                FROM unnest(@include_ids::text[]) WITH ORDINALITY AS i (id, n)
                LEFT JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = i.id OFFSET 0) AS m
                    ON recall.reached(m.resource_id, @reach::text[])
                ORDER BY i.n
            )
        END AS include_ids
    FROM (
        SELECT t.resource_id AS owner_id
        FROM recall.threads AS t
        WHERE t.id = @thread_id::text
            AND recall.reached(t.resource_id, @reach::text[])
        UNION ALL
        SELECT ''
        WHERE @thread_id::text = ''
            AND recall.reached(@resource_id::text, @reach::text[])
    ) AS o
),
hit AS MATERIALIZED (
    SELECT
        h.message_id::text AS message_id,
        h.score::float8 AS score,
        h.similarity::float8 AS similarity,
        h.words::float8 AS words,
        h.plan::text AS plan,
        h.visited::bigint AS visited,
        row_number() OVER () AS rank
    FROM scope AS s
    CROSS JOIN LATERAL recall.search_positions(
        CASE WHEN @hits_in_thread::boolean THEN @thread_id::text ELSE '' END,
        coalesce(nullif(s.owner_id, ''), @resource_id::text),
        @search_mode::text,
        @question::text,
        sqlc.narg('query_vector')::vector,
        @query_model::text,
        @index_name::text,
        @top_k::integer,
        sqlc.narg('threshold')::float8,
        @roles::text[],
        (sqlc.narg('hit_matching')::text)::jsonpath,
        coalesce(sqlc.narg('starts_at')::timestamptz, '-infinity'),
        coalesce(sqlc.narg('ends_at')::timestamptz, 'infinity')
    ) AS h
),
found AS MATERIALIZED (
    SELECT coalesce(array_agg(h.message_id ORDER BY h.rank), '{}') AS ids, count(*)::integer AS n
    FROM hit AS h
)
SELECT
    s.owner_id::text AS owner_id,
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
    coalesce(r.context_offset, 0)::bigint AS context_offset,
    coalesce(h.rank, 0)::bigint AS rank,
    coalesce(h.score, 0)::float8 AS score,
    coalesce(h.similarity, 'NaN')::float8 AS similarity,
    coalesce(h.words, 0)::float8 AS words,
    coalesce(h.plan, '')::text AS plan,
    coalesce(h.visited, 0)::bigint AS visited
FROM scope AS s
CROSS JOIN found AS f
CROSS JOIN LATERAL recall.recall_positions(
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
    s.include_ids || f.ids,
    @include_thread_ids::text[] || array_fill(''::text, ARRAY[f.n]),
    @include_before::bigint[] || array_fill(@hit_before::bigint, ARRAY[f.n]),
    @include_after::bigint[] || array_fill(@hit_after::bigint, ARRAY[f.n]),
    @keep_tool_pairs::boolean
) AS r
LEFT JOIN LATERAL (
    SELECT f.*
    FROM recall.messages AS f
    WHERE f.thread_id = r.thread_id AND f.seq = r.seq
    OFFSET 0
) AS m ON true
LEFT JOIN hit AS h ON h.message_id = m.id
ORDER BY r.created_at, r.thread_id, r.seq;

-- name: MessagePage :many
-- The page of a thread when nothing but a page is asked for, which is what most
-- recalls are: the same rows as MessageRecall gives, at a third of its cost. In
-- the direction of the page; the caller asks for one row more, to see whether
-- there are more. The thread's columns are the same in each row, and where no
-- message is found there is one row with an empty id. No row: no such
-- thread, or none that is reached.
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
    AND recall.reached(t.resource_id, @reach::text[])
ORDER BY
    CASE WHEN @newest::boolean THEN m.created_at END DESC,
    CASE WHEN @newest::boolean THEN m.seq END DESC,
    m.created_at,
    m.seq;
