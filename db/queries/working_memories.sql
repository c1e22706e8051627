-- name: WorkingMemoryGet :one
-- The working memory of a thread or, without of_thread, of its owner: one row, with
-- version 0 where there is none, and with an empty owner where there is no such
-- thread. Then the resource's is that of resource_id. By threads_pkey,
-- working_memories_resource_id_thread_id_key and working_memory_versions_pkey.
SELECT
    coalesce(t.resource_id, '')::text AS owner_id,
    coalesce(w.id, '')::text AS id,
    coalesce(v.version, 0)::bigint AS version,
    coalesce(v.content, '')::text AS content,
    coalesce(v.created_at, 'epoch')::timestamptz AS updated_at
FROM (SELECT @thread_id::text AS thread_id) AS i
LEFT JOIN LATERAL (SELECT h.* FROM recall.threads AS h WHERE h.id = i.thread_id OFFSET 0) AS t
    ON recall.reached(t.resource_id, @reach::text[])
LEFT JOIN LATERAL (
    (
        SELECT m.*
        FROM recall.working_memories AS m
        WHERE @of_thread::boolean
            AND m.resource_id = t.resource_id
            AND m.thread_id = t.id
        OFFSET 0
    )
    UNION ALL
    (
        SELECT m.*
        FROM recall.working_memories AS m
        WHERE NOT @of_thread::boolean
            AND m.resource_id = coalesce(t.resource_id, @resource_id::text)
            AND m.thread_id IS NULL
            AND recall.reached(m.resource_id, @reach::text[])
        OFFSET 0
    )
) AS w ON true
LEFT JOIN LATERAL (
    SELECT h.*
    FROM recall.working_memory_versions AS h
    WHERE h.working_memory_id = w.id
        AND h.version = w.version
    OFFSET 0
) AS v ON true;

-- name: WorkingMemoryLock :one
-- Locks the working memory of a resource or, where thread_id is not NULL, of its
-- thread, and makes it where it is missing: version 0. Its writers take turns from
-- here on.
INSERT INTO recall.working_memories AS w (resource_id, thread_id)
VALUES (@resource_id::text, sqlc.narg('thread_id')::text)
ON CONFLICT ON CONSTRAINT working_memories_resource_id_thread_id_key DO UPDATE
SET version = w.version
RETURNING w.id, w.version;

-- name: WorkingMemoryVersionGet :one
SELECT v.content, v.created_at
FROM recall.working_memory_versions AS v
WHERE v.working_memory_id = @working_memory_id::text
    AND v.version = @version::bigint;

-- name: WorkingMemoryVersionList :many
-- The versions before one, newest first.
SELECT v.version, v.content, v.created_at
FROM recall.working_memory_versions AS v
WHERE v.working_memory_id = @working_memory_id::text
    AND v.version < @before::bigint
    AND recall.reached(v.resource_id, @reach::text[])
ORDER BY v.version DESC
LIMIT @max_rows::bigint;

-- name: WorkingMemoryVersionAdd :one
-- Adds the next version, which counts from now on, and forgets all but the newest
-- kept_versions.
WITH memory AS (
    UPDATE recall.working_memories AS w
    SET version = w.version + 1
    WHERE w.id = @id::text
    RETURNING w.id, w.resource_id, w.version
),
forgotten AS (
    DELETE FROM recall.working_memory_versions AS v
    WHERE v.working_memory_id = @id::text
        AND v.version <= (SELECT m.version FROM memory AS m) - @kept_versions::bigint
)
INSERT INTO recall.working_memory_versions AS v (working_memory_id, resource_id, version, content, created_at)
SELECT m.id, m.resource_id, m.version, @content::text, date_trunc('milliseconds', statement_timestamp())
FROM memory AS m
RETURNING v.version, v.created_at;

-- name: WorkingMemoryCopy :exec
-- Gives a clone or, where thread_id is NULL, its owner the version of a working
-- memory that held at the fork, as version 1. One that has a working memory keeps it.
--
-- The fork is at the last message that was copied (none where its id is empty). If
-- the source goes on after it, the version is the newest of that message's time or
-- before; or the oldest, if that is from before the source's next message, or if
-- older ones are forgotten (kept_versions). If the source does not go on, it is the
-- current one.
WITH last AS (
    SELECT m.created_at, m.seq
    FROM recall.messages AS m
    WHERE m.id = @last_message_id::text
),
next AS (
    SELECT m.created_at
    FROM recall.messages AS m
    WHERE m.thread_id = @source_thread_id::text
        AND (m.created_at, m.seq) > (
            coalesce((SELECT l.created_at FROM last AS l), '-infinity'),
            coalesce((SELECT l.seq FROM last AS l), 0)
        )
    ORDER BY m.created_at, m.seq
    LIMIT 1
),
fork AS (
    SELECT
        coalesce((SELECT n.created_at FROM next AS n), 'infinity') AS next_at,
        CASE
            WHEN EXISTS (SELECT FROM next) THEN coalesce((SELECT l.created_at FROM last AS l), '-infinity')
            ELSE 'infinity'
        END AS last_at
),
held AS (
    SELECT v.content
    FROM fork AS f
    CROSS JOIN LATERAL (
        SELECT h.*
        FROM recall.working_memory_versions AS h
        WHERE h.working_memory_id = @id::text
        OFFSET 0
    ) AS v
    WHERE v.created_at < f.next_at
        OR (SELECT w.version FROM recall.working_memories AS w WHERE w.id = @id::text) > @kept_versions::bigint
    ORDER BY v.created_at <= f.last_at DESC, CASE WHEN v.created_at <= f.last_at THEN -v.version ELSE v.version END
    LIMIT 1
),
memory AS (
    INSERT INTO recall.working_memories AS w (resource_id, thread_id, version)
    SELECT @resource_id::text, sqlc.narg('thread_id')::text, 1
    FROM held
    ON CONFLICT ON CONSTRAINT working_memories_resource_id_thread_id_key DO NOTHING
    RETURNING w.id, w.resource_id, w.version
)
INSERT INTO recall.working_memory_versions (working_memory_id, resource_id, version, content, created_at)
SELECT m.id, m.resource_id, m.version, h.content, date_trunc('milliseconds', statement_timestamp())
FROM memory AS m
CROSS JOIN held AS h;

-- name: WorkingMemoryLockManyOfResource :many
-- Locks the working memories of a resource that is erased and of given threads of
-- its, which the caller has locked. Versions come and go under these locks only.
-- working_memories_resource_id_thread_id_key.
SELECT w.id
FROM recall.working_memories AS w
WHERE w.resource_id = @resource_id::text
    AND (w.thread_id IS NULL OR w.thread_id = ANY (@thread_ids::text[]))
ORDER BY w.id
FOR UPDATE;

-- name: WorkingMemoryVersionDeleteMany :execrows
-- Removes the versions of working memories, which the caller has locked.
DELETE FROM recall.working_memory_versions AS v
WHERE v.working_memory_id = ANY (@working_memory_ids::text[]);

-- name: WorkingMemoryDeleteMany :execrows
-- Removes working memories, which the caller has locked.
DELETE FROM recall.working_memories AS w
WHERE w.id = ANY (@ids::text[]);
