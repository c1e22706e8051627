-- name: JobBacklog :one
-- The jobs that are not done: how many, counted to 10,001, the age of the oldest
-- in seconds, and how many are dead, counted to 10,001. river_job_waiting_idx,
-- river_job_state_and_finalized_at_index.
SELECT
    w.waiting::bigint AS waiting,
    w.oldest_seconds::float8 AS oldest_seconds,
    (
        SELECT count(*)
        FROM (
            SELECT FROM recall.river_job AS j
            WHERE j.state IN ('cancelled', 'discarded') AND j.finalized_at IS NOT NULL AND j.queue <> 'maintenance'
            LIMIT 10001
        ) AS d
    )::bigint AS dead
FROM (
    SELECT
        count(*) AS waiting,
        coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(j.created_at))), 0) AS oldest_seconds
    FROM (
        SELECT b.created_at
        FROM recall.river_job AS b
        WHERE b.finalized_at IS NULL AND b.queue <> 'maintenance'
        ORDER BY b.created_at
        LIMIT 10001
    ) AS j
) AS w;

-- name: JobList :many
-- Jobs that are not completed, newest first: the dead, or the others. What one waits
-- for is what failed last where that is not empty. river_job_dead_idx,
-- river_job_unfinished_idx.
SELECT
    j.id,
    j.kind,
    j.state::text AS state,
    j.attempt,
    j.created_at,
    j.scheduled_at,
    j.args,
    coalesce(j.metadata ->> 'waitsFor', '')::text AS waits_for,
    coalesce(j.errors[cardinality(j.errors)] ->> 'error', '')::text AS last_error
FROM (
    (
        SELECT d.*
        FROM recall.river_job AS d
        WHERE @dead::boolean
            AND d.id < @before_id::bigint
            AND d.finalized_at IS NOT NULL AND d.state <> 'completed' AND d.queue <> 'maintenance'
            AND recall.reached(coalesce(d.args ->> 'resourceId', ''), @reach::text[])
        ORDER BY d.id DESC
        LIMIT @max_rows::bigint
    )
    UNION ALL
    (
        SELECT w.*
        FROM recall.river_job AS w
        WHERE NOT @dead::boolean
            AND w.id < @before_id::bigint
            AND w.finalized_at IS NULL AND w.queue <> 'maintenance'
            AND recall.reached(coalesce(w.args ->> 'resourceId', ''), @reach::text[])
        ORDER BY w.id DESC
        LIMIT @max_rows::bigint
    )
) AS j
ORDER BY j.id DESC;

-- name: JobRetryMany :one
-- Gives dead jobs all their tries again, from now on, and counts them: those with
-- the given ids, or all where there are none. CASE keeps the planner from reading
-- all dead jobs for a few ids. river_job_pkey.
WITH retried AS (
    UPDATE recall.river_job AS j
    SET state = 'available',
        scheduled_at = statement_timestamp(),
        finalized_at = NULL,
        attempt = 0,
        metadata = j.metadata - '{river:rescue_count,waitsFor}'::text[]
    WHERE j.id = ANY (ARRAY(
            SELECT n.id FROM unnest(@ids::bigint[]) AS n (id)
            UNION ALL
            SELECT d.id
            FROM recall.river_job AS d
            WHERE cardinality(@ids::bigint[]) = 0
                AND d.state IN ('cancelled', 'discarded')
                AND d.finalized_at IS NOT NULL
                AND recall.reached(coalesce(d.args ->> 'resourceId', ''), @reach::text[])
        ))
        AND CASE WHEN j.queue <> 'maintenance' THEN j.state IN ('cancelled', 'discarded') END
        AND recall.reached(coalesce(j.args ->> 'resourceId', ''), @reach::text[])
    RETURNING j.id
)
SELECT count(*) FROM retried;

-- name: JobListWaiting :many
-- The next jobs of a queue that nobody works on, by id. Reads what waits in other
-- queues too. river_job_unfinished_idx.
SELECT j.id, j.args
FROM recall.river_job AS j
WHERE j.finalized_at IS NULL
    AND j.queue <> 'maintenance'
    AND j.queue = @queue::text
    AND j.state <> 'running'
    AND j.id > @after_id::bigint
ORDER BY j.id
LIMIT @max_rows::bigint;

-- name: JobCompleteMany :exec
-- Ends jobs that nobody works on, as done. river_job_pkey.
UPDATE recall.river_job AS j
SET state = 'completed',
    finalized_at = statement_timestamp()
WHERE j.id = ANY (@ids::bigint[])
    AND j.finalized_at IS NULL
    AND j.state <> 'running';

-- name: JobDeleteByQueue :exec
-- Removes the jobs of a queue that nobody will work again. All states are named
-- for river_job_prioritized_fetching_index, which begins with them.
DELETE FROM recall.river_job AS j
WHERE j.state IN ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled')
    AND j.queue = @queue::text;

-- name: JobTransfer :exec
-- Gives the jobs of a thread to its new owner, in the order of their ids.
-- river_job_args_index.
UPDATE recall.river_job AS j
SET args = j.args || jsonb_build_object('resourceId', @to_resource_id::text)
WHERE j.id = ANY (ARRAY(
        SELECT o.id
        FROM recall.river_job AS o
        WHERE o.args @> jsonb_build_object('resourceId', @resource_id::text, 'threadId', @thread_id::text)
        ORDER BY o.id
        FOR UPDATE
    ));

-- name: JobDeleteByResource :execrows
-- Removes the jobs of a resource, in whatever state, but for those of threads that
-- are there: such a thread has come since the caller locked those that it removed.
-- Whoever works on one finds nothing left to do. river_job_args_index, threads_pkey.
DELETE FROM recall.river_job AS j
WHERE j.id = ANY (ARRAY(
        SELECT o.id
        FROM recall.river_job AS o
        WHERE o.args @> jsonb_build_object('resourceId', @resource_id::text)
            AND (SELECT t.id FROM recall.threads AS t WHERE t.id = o.args ->> 'threadId') IS NULL
        ORDER BY o.id
        FOR UPDATE
    ));

-- name: JobCountGivenUp :one
-- Counts those of given messages that have a dead job of a queue and no other one
-- that is not done. CASE keeps the jobs of the queue that are not done from being
-- read, once and hashed, where no message has a dead job. IS TRUE and || '' keep
-- the planner, whatever it believes, from all indexes but
-- river_job_dead_message_ids_idx for those; DISTINCT lets it believe that the others
-- fit into memory.
SELECT count(*)
FROM unnest(@message_ids::text[]) AS i (message_id)
WHERE CASE
    WHEN EXISTS (
        SELECT FROM recall.river_job AS j
        WHERE j.args -> 'messageIds' ? i.message_id
            AND (j.state IN ('cancelled', 'discarded')) IS TRUE
            AND j.queue || '' = @queue::text
    ) THEN i.message_id NOT IN (
        SELECT DISTINCT w.message_id
        FROM recall.river_job AS j
        CROSS JOIN LATERAL jsonb_array_elements_text(j.args -> 'messageIds') AS w (message_id)
        WHERE j.state IN ('available', 'pending', 'retryable', 'running', 'scheduled') AND j.queue = @queue::text
    )
END;

-- name: JobNoteTimeout :exec
-- Notes how long the process that works on a job lets it run.
UPDATE recall.river_job AS j
SET metadata = jsonb_set(j.metadata, '{timeoutMs}', to_jsonb(@timeout_ms::bigint))
WHERE j.id = @id::bigint;
