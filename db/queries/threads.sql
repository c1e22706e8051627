-- name: ThreadCreate :one
-- Creates a thread. No row: the id is taken.
--
-- The conflict names no constraint, so that both unique indexes of the table
-- arbitrate. With one of them named, two creations at once could meet in the
-- other: as an error, or as a deadlock on the insertion itself.
INSERT INTO recall.threads AS t (id, resource_id, agent_id, title, title_source, metadata, created_at, updated_at)
VALUES (
    @id::text,
    @resource_id::text,
    nullif(@agent_id::text, ''),
    coalesce(sqlc.narg('title')::text, ''),
    CASE WHEN sqlc.narg('title')::text <> '' THEN 'user' ELSE 'none' END,
    sqlc.narg('metadata')::jsonb,
    date_trunc('milliseconds', statement_timestamp()),
    date_trunc('milliseconds', statement_timestamp())
)
ON CONFLICT DO NOTHING
RETURNING t.*;

-- name: ThreadCreateMissing :exec
-- Creates the thread of a save if it does not exist; else, whoever owns it, it stays
-- as it is.
INSERT INTO recall.threads (id, resource_id, agent_id, created_at, updated_at)
VALUES (
    @id::text,
    @resource_id::text,
    nullif(@agent_id::text, ''),
    date_trunc('milliseconds', statement_timestamp()),
    date_trunc('milliseconds', statement_timestamp())
)
ON CONFLICT DO NOTHING;

-- name: ThreadOverwrite :one
-- Sets title and metadata, where given, of a thread that is created again. No
-- row: no such thread of this owner.
UPDATE recall.threads AS t
SET title = coalesce(sqlc.narg('title')::text, t.title),
    title_source = CASE WHEN sqlc.narg('title')::text <> '' THEN 'user' ELSE t.title_source END,
    metadata = coalesce(sqlc.narg('metadata')::jsonb, t.metadata),
    version = t.version + 1,
    updated_at = date_trunc('milliseconds', statement_timestamp())
WHERE t.id = @id::text
    AND t.resource_id = @resource_id::text
    AND recall.reached(t.resource_id, @reach::text[])
RETURNING t.*;

-- name: ThreadIsTaken :one
-- Whether a thread of another owner has the id. An id is taken for all: this alone
-- looks beyond what a caller reaches, to say so.
SELECT EXISTS (
    SELECT
    FROM recall.threads AS t
    WHERE t.id = @id::text
        AND t.resource_id <> @resource_id::text
);

-- name: ThreadGet :one
SELECT t.*
FROM recall.threads AS t
WHERE t.id = @id::text
    AND recall.reached(t.resource_id, @reach::text[]);

-- name: ThreadHold :one
-- Keeps the thread and its owner from going until the transaction ends; messages
-- may come meanwhile.
SELECT t.*
FROM recall.threads AS t
WHERE t.id = @id::text
    AND recall.reached(t.resource_id, @reach::text[])
FOR KEY SHARE;

-- name: ThreadListTitles :many
SELECT t.id, t.title
FROM recall.threads AS t
WHERE t.id = ANY (@ids::text[])
    AND recall.reached(t.resource_id, @reach::text[]);

-- name: ThreadLockMany :many
-- Locks the threads of a save, in the one order that keeps writers from
-- deadlocks: by id. Writers of one thread take turns from here on.
SELECT t.id, t.resource_id
FROM recall.threads AS t
WHERE t.id = ANY (@ids::text[])
    AND recall.reached(t.resource_id, @reach::text[])
ORDER BY t.id
FOR NO KEY UPDATE;

-- name: ThreadLockManyOfMessages :many
-- The same for the threads of given messages.
SELECT t.id, t.resource_id
FROM recall.threads AS t
WHERE t.id = ANY (ARRAY(
        SELECT DISTINCT m.thread_id
        FROM unnest(@message_ids::text[]) AS i (id)
        CROSS JOIN LATERAL (SELECT f.thread_id FROM recall.messages AS f WHERE f.id = i.id OFFSET 0) AS m
    ))
    AND recall.reached(t.resource_id, @reach::text[])
ORDER BY t.id
FOR NO KEY UPDATE;

-- name: ThreadLockManyOfResource :many
-- Locks the threads of a resource that is erased, and the clones of them that others
-- own, in the same order. Nobody may look at them meanwhile as if they stayed, so
-- the lock is that of a deletion at once. threads_resource_created_at_idx,
-- threads_source_thread_id_idx.
WITH own AS MATERIALIZED (
    SELECT o.id
    FROM recall.threads AS o
    WHERE o.resource_id = @resource_id::text
)
SELECT t.id, t.resource_id
FROM recall.threads AS t
WHERE t.id = ANY (ARRAY(
        SELECT o.id
        FROM own AS o
        UNION
        SELECT c.id
        FROM own AS o
        CROSS JOIN LATERAL (SELECT f.id FROM recall.threads AS f WHERE f.source_thread_id = o.id OFFSET 0) AS c
    ))
ORDER BY t.id
FOR UPDATE;

-- name: ThreadCountClonesBeside :one
-- Counts the clones of given threads that are not among the locked ones.
SELECT count(*)
FROM unnest(@ids::text[]) AS i (id)
CROSS JOIN LATERAL (SELECT f.id FROM recall.threads AS f WHERE f.source_thread_id = i.id OFFSET 0) AS c
WHERE c.id <> ALL (@locked_ids::text[]);

-- name: ThreadForgetSources :exec
-- Makes those of given threads, which the caller has locked, that are copies of
-- some forget it.
UPDATE recall.threads AS t
SET source_thread_id = NULL,
    metadata = CASE
        WHEN jsonb_typeof(t.metadata -> 'clone') = 'object'
            THEN t.metadata #- '{clone,sourceThreadId}' #- '{clone,lastMessageId}'
        ELSE t.metadata
    END,
    version = t.version + 1
WHERE t.id = ANY (@ids::text[])
    AND t.source_thread_id = ANY (@source_thread_ids::text[]);

-- name: ThreadDeleteMany :execrows
-- Removes threads, which the caller has locked.
DELETE FROM recall.threads AS t
WHERE t.id = ANY (@ids::text[]);

-- name: ThreadListExpired :many
-- The threads of an agent that were last updated longer ago than a time, the oldest
-- first, with how much each holds. threads_agent_updated_at_idx.
SELECT t.id, t.message_count
FROM recall.threads AS t
WHERE t.agent_id = @agent_id::text
    AND t.updated_at < statement_timestamp() - make_interval(secs => @max_age_seconds::float8)
ORDER BY t.updated_at, t.id
LIMIT @max_rows::bigint;

-- name: ThreadDeleteExpired :execrows
-- Removes those of given threads that are still as old, in the order in which
-- writers lock them.
DELETE FROM recall.threads AS t
WHERE t.id = ANY (ARRAY(
        SELECT e.id
        FROM recall.threads AS e
        WHERE e.id = ANY (@ids::text[])
            AND e.agent_id = @agent_id::text
            AND e.updated_at < statement_timestamp() - make_interval(secs => @max_age_seconds::float8)
        ORDER BY e.id
        FOR UPDATE
    ));

-- name: ThreadUpdate :one
-- Sets the title and merges metadata key by key, where given; a null removes
-- its key. No row: no such thread of this owner (any owner where empty), with one
-- of the versions (any version where there are none).
UPDATE recall.threads AS t
SET title = coalesce(sqlc.narg('title')::text, t.title),
    title_source = CASE WHEN sqlc.narg('title')::text IS NULL THEN t.title_source ELSE 'user' END,
    metadata = CASE
        WHEN sqlc.narg('metadata')::jsonb IS NULL THEN t.metadata
        ELSE (coalesce(t.metadata, '{}') || sqlc.narg('metadata')::jsonb)
            - ARRAY(SELECT e.key FROM jsonb_each(sqlc.narg('metadata')::jsonb) AS e WHERE e.value = 'null')
    END,
    version = t.version + 1,
    updated_at = date_trunc('milliseconds', statement_timestamp())
WHERE t.id = @id::text
    AND (@resource_id::text = '' OR t.resource_id = @resource_id::text)
    AND recall.reached(t.resource_id, @reach::text[])
    AND (cardinality(@versions::bigint[]) = 0 OR t.version = ANY (@versions::bigint[]))
RETURNING t.*;

-- name: ThreadListUntitled :many
-- Those of given threads, which the caller has locked, that lack a title, that no
-- user has wanted to be without one, and that no job is to give one: none that waits
-- or runs, and none that is dead. By id: threads_pkey, river_job_title_idx.
SELECT t.id, t.resource_id
FROM recall.threads AS t
LEFT JOIN LATERAL (
    SELECT true AS found
    FROM recall.river_job AS j
    WHERE j.args ->> 'threadId' = t.id AND j.kind = 'title' AND j.state <> 'completed'
    LIMIT 1 -- keeps it a look-up: as an anti-join it may read all jobs
) AS job ON true
WHERE t.id = ANY (@ids::text[])
    AND t.title = ''
    AND t.title_source = 'none'
    AND job.found IS NULL
ORDER BY t.id;

-- name: ThreadListOpening :many
-- What the title of a thread is made of, in any order: the first message of the
-- user's that says something, and the first one of the assistant's after it. No row:
-- there is no such thread without a title, or its user has said nothing.
-- messages_thread_order_idx.
WITH question AS (
    SELECT m.id, m.role, m.content, m.updated_at, m.thread_id, m.created_at, m.seq
    FROM recall.threads AS t
    CROSS JOIN LATERAL (
        SELECT q.*
        FROM recall.messages AS q
        WHERE q.thread_id = t.id
            AND q.role = 'user'
            AND EXISTS (
                SELECT FROM jsonb_array_elements_text(recall.message_texts(q.content)) AS w (words) WHERE w.words ~ '\S'
            )
        ORDER BY q.created_at, q.seq
        LIMIT 1
    ) AS m
    WHERE t.id = @id::text
        AND recall.reached(t.resource_id, @reach::text[])
        AND t.title = ''
        AND t.title_source = 'none'
)
SELECT q.id, q.role, q.content, q.updated_at
FROM question AS q
UNION ALL
SELECT m.id, m.role, m.content, m.updated_at
FROM question AS q
CROSS JOIN LATERAL (
    SELECT a.*
    FROM recall.messages AS a
    WHERE a.thread_id = q.thread_id
        AND (a.created_at, a.seq) > (q.created_at, q.seq)
        AND a.role = 'assistant'
        AND EXISTS (
            SELECT FROM jsonb_array_elements_text(recall.message_texts(a.content)) AS w (words) WHERE w.words ~ '\S'
        )
    ORDER BY a.created_at, a.seq
    LIMIT 1
) AS m;

-- name: ThreadSetGeneratedTitle :execrows
-- Gives a thread, which the caller has locked, a title that was made of given
-- messages. No row: it has one by now, or a user who wants none, it is gone, or one
-- of the messages is, or was changed. updated_at stays: nothing was said.
UPDATE recall.threads AS t
SET title = @title::text,
    title_source = 'generated'
WHERE t.id = @id::text
    AND t.title = ''
    AND t.title_source = 'none'
    AND (
        SELECT count(*)
        FROM ROWS FROM (unnest(@message_ids::text[]), unnest(@updated_ats::timestamptz[])) AS i (id, updated_at)
        CROSS JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = i.id OFFSET 0) AS m
        WHERE m.thread_id = t.id AND m.updated_at = i.updated_at
    ) = cardinality(@message_ids::text[]);

-- name: ThreadTransfer :one
-- The new owner reaches the thread's messages by ON UPDATE CASCADE. No row: as for
-- ThreadUpdate.
UPDATE recall.threads AS t
SET resource_id = @to_resource_id::text,
    version = t.version + 1,
    updated_at = date_trunc('milliseconds', statement_timestamp())
WHERE t.id = @id::text
    AND (@resource_id::text = '' OR t.resource_id = @resource_id::text)
    AND recall.reached(t.resource_id, @reach::text[])
    AND (cardinality(@versions::bigint[]) = 0 OR t.version = ANY (@versions::bigint[]))
RETURNING t.*;

-- name: ThreadDelete :execrows
-- No row: as for ThreadUpdate.
DELETE FROM recall.threads AS t
WHERE t.id = @id::text
    AND (@resource_id::text = '' OR t.resource_id = @resource_id::text)
    AND recall.reached(t.resource_id, @reach::text[])
    AND (cardinality(@versions::bigint[]) = 0 OR t.version = ANY (@versions::bigint[]));

-- name: ThreadList :many
-- A page of threads, of one resource or (where that is empty) of all that are
-- reached, whose metadata satisfies the jsonpath predicate `matching`. max_rows NULL means
-- all. total is the same in each row; where no thread is found there is one row
-- with an empty id. Order: the time asked for, ties by id, in one direction.
--
-- Each branch reads one index in order, and none but one runs: the first
-- conditions of the others, on parameters alone, are false. So the plan is
-- right as a generic one too. By resource threads_resource_created_at_idx and
-- threads_resource_updated_at_idx, else threads_created_at_idx and
-- threads_updated_at_idx.
WITH page AS (
    (
        SELECT t.*
        FROM recall.threads AS t
        WHERE @resource_id::text <> '' AND NOT @by_updated_at::boolean AND @newest::boolean
            AND t.resource_id = @resource_id::text
            AND recall.reached(t.resource_id, @reach::text[])
            AND coalesce(t.metadata, '{}') @@ (@matching::text)::jsonpath
        ORDER BY t.created_at DESC, t.id DESC
        LIMIT sqlc.narg('max_rows')::bigint OFFSET @skip_rows::bigint
    )
    UNION ALL
    (
        SELECT t.*
        FROM recall.threads AS t
        WHERE @resource_id::text <> '' AND NOT @by_updated_at::boolean AND NOT @newest::boolean
            AND t.resource_id = @resource_id::text
            AND recall.reached(t.resource_id, @reach::text[])
            AND coalesce(t.metadata, '{}') @@ (@matching::text)::jsonpath
        ORDER BY t.created_at, t.id
        LIMIT sqlc.narg('max_rows')::bigint OFFSET @skip_rows::bigint
    )
    UNION ALL
    (
        SELECT t.*
        FROM recall.threads AS t
        WHERE @resource_id::text <> '' AND @by_updated_at::boolean AND @newest::boolean
            AND t.resource_id = @resource_id::text
            AND recall.reached(t.resource_id, @reach::text[])
            AND coalesce(t.metadata, '{}') @@ (@matching::text)::jsonpath
        ORDER BY t.updated_at DESC, t.id DESC
        LIMIT sqlc.narg('max_rows')::bigint OFFSET @skip_rows::bigint
    )
    UNION ALL
    (
        SELECT t.*
        FROM recall.threads AS t
        WHERE @resource_id::text <> '' AND @by_updated_at::boolean AND NOT @newest::boolean
            AND t.resource_id = @resource_id::text
            AND recall.reached(t.resource_id, @reach::text[])
            AND coalesce(t.metadata, '{}') @@ (@matching::text)::jsonpath
        ORDER BY t.updated_at, t.id
        LIMIT sqlc.narg('max_rows')::bigint OFFSET @skip_rows::bigint
    )
    UNION ALL
    (
        SELECT t.*
        FROM recall.threads AS t
        WHERE @resource_id::text = '' AND NOT @by_updated_at::boolean AND @newest::boolean
            AND recall.reached(t.resource_id, @reach::text[])
            AND coalesce(t.metadata, '{}') @@ (@matching::text)::jsonpath
        ORDER BY t.created_at DESC, t.id DESC
        LIMIT sqlc.narg('max_rows')::bigint OFFSET @skip_rows::bigint
    )
    UNION ALL
    (
        SELECT t.*
        FROM recall.threads AS t
        WHERE @resource_id::text = '' AND NOT @by_updated_at::boolean AND NOT @newest::boolean
            AND recall.reached(t.resource_id, @reach::text[])
            AND coalesce(t.metadata, '{}') @@ (@matching::text)::jsonpath
        ORDER BY t.created_at, t.id
        LIMIT sqlc.narg('max_rows')::bigint OFFSET @skip_rows::bigint
    )
    UNION ALL
    (
        SELECT t.*
        FROM recall.threads AS t
        WHERE @resource_id::text = '' AND @by_updated_at::boolean AND @newest::boolean
            AND recall.reached(t.resource_id, @reach::text[])
            AND coalesce(t.metadata, '{}') @@ (@matching::text)::jsonpath
        ORDER BY t.updated_at DESC, t.id DESC
        LIMIT sqlc.narg('max_rows')::bigint OFFSET @skip_rows::bigint
    )
    UNION ALL
    (
        SELECT t.*
        FROM recall.threads AS t
        WHERE @resource_id::text = '' AND @by_updated_at::boolean AND NOT @newest::boolean
            AND recall.reached(t.resource_id, @reach::text[])
            AND coalesce(t.metadata, '{}') @@ (@matching::text)::jsonpath
        ORDER BY t.updated_at, t.id
        LIMIT sqlc.narg('max_rows')::bigint OFFSET @skip_rows::bigint
    )
),
summary AS (
    SELECT
        CASE
            WHEN @resource_id::text <> '' THEN (
                SELECT count(*)
                FROM recall.threads AS t
                WHERE t.resource_id = @resource_id::text
                    AND recall.reached(t.resource_id, @reach::text[])
                    AND coalesce(t.metadata, '{}') @@ (@matching::text)::jsonpath
            )
            ELSE (
                SELECT count(*)
                FROM recall.threads AS t
                WHERE recall.reached(t.resource_id, @reach::text[])
                    AND coalesce(t.metadata, '{}') @@ (@matching::text)::jsonpath
            )
        END AS total
)
SELECT
    coalesce(y.total, 0)::bigint AS total,
    coalesce(p.id, '')::text AS id,
    coalesce(p.resource_id, '')::text AS resource_id,
    coalesce(p.title, '')::text AS title,
    p.metadata::jsonb AS metadata,
    coalesce(p.created_at, 'epoch')::timestamptz AS created_at,
    coalesce(p.updated_at, 'epoch')::timestamptz AS updated_at,
    coalesce(p.version, 0)::bigint AS version
FROM summary AS y
LEFT JOIN page AS p ON true
ORDER BY
    CASE WHEN @newest::boolean THEN CASE WHEN @by_updated_at::boolean THEN p.updated_at ELSE p.created_at END END DESC,
    CASE WHEN @newest::boolean THEN p.id END DESC,
    CASE WHEN @by_updated_at::boolean THEN p.updated_at ELSE p.created_at END,
    p.id;

-- name: ThreadListClones :many
-- The threads cloned from a thread, oldest first: threads_source_thread_id_idx.
SELECT t.*
FROM recall.threads AS t
WHERE t.source_thread_id = @source_thread_id::text
    AND (@resource_id::text = '' OR t.resource_id = @resource_id::text)
    AND recall.reached(t.resource_id, @reach::text[])
ORDER BY t.created_at, t.id;

-- name: ThreadListCloneHistory :many
-- The chain of sources of a thread, from the original to the thread itself. It
-- ends where a source is gone or not reached, belongs to another resource than the
-- one given, or stands in the chain already: an id can be given anew after a
-- deletion.
WITH RECURSIVE ancestor AS (
    SELECT t.id, t.source_thread_id, ARRAY[t.id]::text[] AS path
    FROM recall.threads AS t
    WHERE t.id = @id::text
        AND (@resource_id::text = '' OR t.resource_id = @resource_id::text)
        AND recall.reached(t.resource_id, @reach::text[])
    UNION ALL
    SELECT t.id, t.source_thread_id, a.path || t.id
    FROM ancestor AS a
    CROSS JOIN LATERAL (SELECT h.* FROM recall.threads AS h WHERE h.id = a.source_thread_id OFFSET 0) AS t
    WHERE cardinality(a.path) < @max_generations::integer
        AND t.id <> ALL (a.path)
        AND (@resource_id::text = '' OR t.resource_id = @resource_id::text)
        AND recall.reached(t.resource_id, @reach::text[])
)
SELECT t.*
FROM ancestor AS a
CROSS JOIN LATERAL (SELECT h.* FROM recall.threads AS h WHERE h.id = a.id OFFSET 0) AS t
ORDER BY cardinality(a.path) DESC;

-- name: ThreadClone :many
-- Copies a thread with its messages inside the database and gives the copies,
-- oldest first, each with the id of its source; the thread's columns are the
-- same in each row, and where no message is copied there is one row with an
-- empty message id. No row: no such source of this owner (any where empty). One
-- statement, so one snapshot: a writer who appends meanwhile is in it with all
-- messages up to some commit.
--
-- Chosen are the messages with starts_at <= created_at < ends_at, among
-- message_ids where has_message_ids, and of them the newest max_rows (NULL:
-- all).
--
-- The source's lock lets writers go on, and keeps those who delete it, and all of
-- its owner's, waiting: they are to find the clone.
WITH source AS (
    SELECT t.id, t.resource_id, t.agent_id, t.title
    FROM recall.threads AS t
    WHERE t.id = @source_id::text
        AND (@source_resource_id::text = '' OR t.resource_id = @source_resource_id::text)
        AND recall.reached(t.resource_id, @reach::text[])
    FOR KEY SHARE
),
chosen AS MATERIALIZED (
    SELECT
        m.id AS source_message_id,
        recall.new_id() AS id,
        row_number() OVER (ORDER BY m.created_at, m.seq) AS seq,
        m.role,
        m.type,
        m.content,
        m.created_at
    FROM (
        (
            SELECT c.*
            FROM recall.messages AS c
            WHERE NOT @has_message_ids::boolean
                AND c.thread_id = @source_id::text
                AND c.created_at >= coalesce(sqlc.narg('starts_at')::timestamptz, '-infinity')
                AND c.created_at < coalesce(sqlc.narg('ends_at')::timestamptz, 'infinity')
            ORDER BY c.created_at DESC, c.seq DESC
            LIMIT sqlc.narg('max_rows')::bigint
        )
        UNION ALL
        (
            SELECT c.*
            FROM (SELECT DISTINCT u.id FROM unnest(@message_ids::text[]) AS u (id)) AS i
            CROSS JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = i.id OFFSET 0) AS c
            WHERE @has_message_ids::boolean
                AND c.thread_id = @source_id::text
                AND c.created_at >= coalesce(sqlc.narg('starts_at')::timestamptz, '-infinity')
                AND c.created_at < coalesce(sqlc.narg('ends_at')::timestamptz, 'infinity')
            ORDER BY c.created_at DESC, c.seq DESC
            LIMIT sqlc.narg('max_rows')::bigint
        )
    ) AS m
),
clone AS (
    INSERT INTO recall.threads (
        id, resource_id, agent_id, title, title_source, metadata, message_count, last_seq, source_thread_id,
        created_at, updated_at
    )
    SELECT
        @id::text,
        coalesce(nullif(@resource_id::text, ''), s.resource_id),
        s.agent_id,
        coalesce(sqlc.narg('title')::text, CASE WHEN s.title = '' THEN '' ELSE 'Clone of ' || s.title END),
        CASE WHEN sqlc.narg('title')::text IS NULL THEN 'none' ELSE 'user' END,
        coalesce(sqlc.narg('metadata')::jsonb, '{}') || jsonb_build_object(
            'clone',
            jsonb_strip_nulls(jsonb_build_object(
                'sourceThreadId', s.id,
                'clonedAt', to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                'lastMessageId', (SELECT c.source_message_id FROM chosen AS c ORDER BY c.seq DESC LIMIT 1)
            ))
        ),
        (SELECT count(*) FROM chosen),
        (SELECT count(*) FROM chosen),
        s.id,
        date_trunc('milliseconds', statement_timestamp()),
        date_trunc('milliseconds', statement_timestamp())
    FROM source AS s
    RETURNING *
),
copy AS (
    INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, type, content, created_at, updated_at)
    SELECT c.id, t.id, t.resource_id, c.seq, c.role, c.type, c.content, c.created_at, t.created_at
    FROM chosen AS c
    CROSS JOIN clone AS t
)
SELECT
    t.id AS thread_id,
    t.resource_id,
    t.title,
    t.metadata,
    t.created_at AS thread_created_at,
    t.updated_at AS thread_updated_at,
    t.version,
    coalesce(c.source_message_id, '')::text AS source_message_id,
    coalesce(c.id, '')::text AS id,
    coalesce(c.role, '')::text AS role,
    coalesce(c.type, '')::text AS type,
    c.content::jsonb AS content,
    coalesce(c.created_at, 'epoch')::timestamptz AS created_at
FROM clone AS t
LEFT JOIN chosen AS c ON true
ORDER BY c.seq;
