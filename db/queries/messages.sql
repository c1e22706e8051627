-- name: MessageSaveMany :many
-- Stores messages in the order of the arrays. An id that exists in the same
-- thread is updated in place, keeping its position and created_at, and left
-- alone where nothing changed; the others get the thread's next positions. The
-- caller holds the locks of the threads (ThreadLockMany), so positions have no
-- gap and commit in order. A created_at of the year 10000 means now.
--
-- Returns each message's created_at as stored. stored is false where the id
-- lives in another thread; the caller then rolls back. fresh: it was not there
-- before; changed: a row was written. Rows go in by id, so that two saves of
-- the same ids into different threads cannot deadlock.
WITH input AS MATERIALIZED (
    SELECT
        i.id,
        i.thread_id,
        i.role,
        i.type,
        i.content,
        coalesce(nullif(i.created_at, '10000-01-01 00:00:00+00'), date_trunc('milliseconds', statement_timestamp()))
            AS created_at,
        i.n,
        m.thread_id AS old_thread_id,
        m.created_at AS old_created_at
    FROM ROWS FROM (
        unnest(@ids::text[]),
        unnest(@thread_ids::text[]),
        unnest(@roles::text[]),
        unnest(@types::text[]),
        unnest(@contents::jsonb[]),
        unnest(@created_ats::timestamptz[])
    ) WITH ORDINALITY AS i (id, thread_id, role, type, content, created_at, n)
    LEFT JOIN LATERAL (
        SELECT e.thread_id, e.created_at
        FROM recall.messages AS e
        WHERE e.id = i.id
        OFFSET 0
    ) AS m ON true
),
placed AS (
    SELECT
        i.*,
        t.resource_id,
        t.last_seq + row_number() OVER (PARTITION BY i.thread_id, i.old_thread_id IS NULL ORDER BY i.n) AS seq
    FROM input AS i
    CROSS JOIN LATERAL (
        SELECT h.resource_id, h.last_seq
        FROM recall.threads AS h
        WHERE h.id = i.thread_id
        OFFSET 0
    ) AS t
),
saved AS (
    INSERT INTO recall.messages AS m (id, thread_id, resource_id, seq, role, type, content, created_at, updated_at)
    SELECT
        p.id,
        p.thread_id,
        p.resource_id,
        p.seq,
        p.role,
        p.type,
        p.content,
        p.created_at,
        date_trunc('milliseconds', statement_timestamp())
    FROM placed AS p
    WHERE p.old_thread_id IS NULL OR p.old_thread_id = p.thread_id
    ORDER BY p.id COLLATE "C"
    ON CONFLICT ON CONSTRAINT messages_pkey DO UPDATE
    SET role = excluded.role,
        type = excluded.type,
        content = excluded.content,
        updated_at = excluded.updated_at
    WHERE m.thread_id = excluded.thread_id
        AND (m.role, m.type, m.content) IS DISTINCT FROM (excluded.role, excluded.type, excluded.content)
    RETURNING m.id
),
grown AS (
    UPDATE recall.threads AS t
    SET message_count = t.message_count + g.fresh,
        last_seq = t.last_seq + g.fresh,
        updated_at = date_trunc('milliseconds', statement_timestamp())
    FROM (
        SELECT i.thread_id, count(*) FILTER (WHERE i.old_thread_id IS NULL) AS fresh
        FROM input AS i
        GROUP BY i.thread_id
    ) AS g
    WHERE t.id = g.thread_id
        AND t.id = ANY (@thread_ids::text[]) -- bounds what is read, whatever the join
)
SELECT
    i.n::bigint AS n,
    coalesce(i.old_created_at, i.created_at)::timestamptz AS created_at,
    (coalesce(i.old_thread_id = i.thread_id, false) OR s.id IS NOT NULL)::boolean AS stored,
    (i.old_thread_id IS NULL)::boolean AS fresh,
    (s.id IS NOT NULL)::boolean AS changed
FROM input AS i
LEFT JOIN saved AS s ON s.id = i.id
ORDER BY i.n;

-- name: MessageUpdateMany :many
-- Changes messages; an empty role or type keeps the old one. Content is merged
-- key by key, and so is metadata inside it, as Mastra's updateMessages does.
-- Returns the messages as they are then, in the order of the arrays; ids that
-- do not exist, or belong to another owner than the one given, are missing. The
-- caller holds the locks of the threads.
WITH input AS (
    SELECT i.id, i.role, i.type, i.content, i.n
    FROM ROWS FROM (
        unnest(@ids::text[]), unnest(@roles::text[]), unnest(@types::text[]), unnest(@contents::jsonb[])
    ) WITH ORDINALITY AS i (id, role, type, content, n)
),
changed AS (
    UPDATE recall.messages AS m
    SET role = coalesce(nullif(i.role, ''), m.role),
        type = coalesce(nullif(i.type, ''), m.type),
        content = m.content || i.content || CASE
            WHEN jsonb_typeof(m.content -> 'metadata') = 'object' AND jsonb_typeof(i.content -> 'metadata') = 'object'
                THEN jsonb_build_object('metadata', (m.content -> 'metadata') || (i.content -> 'metadata'))
            ELSE '{}'::jsonb
        END,
        updated_at = date_trunc('milliseconds', statement_timestamp())
    FROM input AS i
    WHERE m.id = i.id
        AND m.id = ANY (@ids::text[]) -- bounds what is read, whatever the join
        AND (@resource_id::text = '' OR m.resource_id = @resource_id::text)
        AND recall.reached(m.resource_id, @reach::text[])
    RETURNING m.id, m.thread_id, m.resource_id, m.role, m.type, m.content, m.created_at, i.n
),
touched AS (
    UPDATE recall.threads AS t
    SET updated_at = date_trunc('milliseconds', statement_timestamp())
    WHERE t.id IN (SELECT c.thread_id FROM changed AS c)
)
SELECT c.id, c.thread_id, c.resource_id, c.role, c.type, c.content, c.created_at
FROM changed AS c
ORDER BY c.n;

-- name: MessageListContents :many
-- What given messages say, in any order; those that are gone are missing.
SELECT m.id, m.role, m.content
FROM unnest(@ids::text[]) AS i (id)
CROSS JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = i.id OFFSET 0) AS m
WHERE recall.reached(m.resource_id, @reach::text[]);

-- name: MessageDeleteMany :one
-- Removes messages, of one owner or (where empty) of any, and counts them. The
-- caller holds the locks of the threads.
WITH gone AS (
    DELETE FROM recall.messages AS m
    WHERE m.id = ANY (@ids::text[])
        AND (@resource_id::text = '' OR m.resource_id = @resource_id::text)
        AND recall.reached(m.resource_id, @reach::text[])
    RETURNING m.thread_id
),
shrunk AS (
    UPDATE recall.threads AS t
    SET message_count = t.message_count - g.n,
        updated_at = date_trunc('milliseconds', statement_timestamp())
    FROM (SELECT gone.thread_id, count(*) AS n FROM gone GROUP BY gone.thread_id) AS g
    WHERE t.id = g.thread_id
)
SELECT count(*) FROM gone;

-- name: MessageDeleteByThread :one
-- Empties a thread, which the caller has locked, and counts what was in it.
WITH gone AS (
    DELETE FROM recall.messages AS m
    WHERE m.thread_id = @thread_id::text
    RETURNING m.id
),
emptied AS (
    UPDATE recall.threads AS t
    SET message_count = t.message_count - (SELECT count(*) FROM gone),
        updated_at = date_trunc('milliseconds', statement_timestamp())
    WHERE t.id = @thread_id::text
)
SELECT count(*) FROM gone;

-- name: MessageDeleteByThreads :execrows
-- Removes all messages of threads, which the caller has locked and removes too: it
-- leaves message_count as it is.
DELETE FROM recall.messages AS m
WHERE m.thread_id = ANY (@thread_ids::text[]);

-- name: MessageListExpired :many
-- The next messages of an agent that are older than a time, in the order of their
-- threads by last update, from a thread on. threads_agent_updated_at_idx,
-- messages_thread_order_idx.
SELECT m.id, t.id AS thread_id, t.updated_at
FROM (
    SELECT h.id, h.updated_at
    FROM recall.threads AS h
    WHERE h.agent_id = @agent_id::text
        AND (h.updated_at, h.id) >= (@from_updated_at::timestamptz, @from_thread_id::text)
    ORDER BY h.updated_at, h.id
) AS t
CROSS JOIN LATERAL (
    SELECT f.id
    FROM recall.messages AS f
    WHERE f.thread_id = t.id
        AND f.created_at < statement_timestamp() - make_interval(secs => @max_age_seconds::float8)
    ORDER BY f.created_at, f.seq
    LIMIT @max_rows::bigint
) AS m
ORDER BY t.updated_at, t.id
LIMIT @max_rows::bigint;

-- name: MessageDeleteExpired :one
-- Removes those of given messages that are as old, and counts them. Their threads,
-- all of which are given and which the caller has locked, do not count as updated:
-- they are to expire in their turn.
WITH gone AS (
    DELETE FROM recall.messages AS m
    WHERE m.id = ANY (@ids::text[])
        AND m.thread_id || '' = ANY (@thread_ids::text[]) -- still; || '' keeps its index out
        AND m.created_at < statement_timestamp() - make_interval(secs => @max_age_seconds::float8)
    RETURNING m.thread_id
),
shrunk AS (
    UPDATE recall.threads AS t
    SET message_count = t.message_count - g.n
    FROM (SELECT gone.thread_id, count(*) AS n FROM gone GROUP BY gone.thread_id) AS g
    WHERE t.id = g.thread_id
        AND t.id = ANY (@thread_ids::text[]) -- bounds what is read, whatever the join
)
SELECT count(*) FROM gone;
