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
-- Jobs that are not completed, newest first: the dead, or the others.
SELECT
    j.id,
    j.kind,
    j.state::text AS state,
    j.attempt,
    j.created_at,
    j.scheduled_at,
    j.args,
    coalesce(j.errors[cardinality(j.errors)] ->> 'error', '')::text AS last_error
FROM recall.river_job AS j
WHERE j.id < @before_id::bigint
    AND j.queue <> 'maintenance'
    AND CASE WHEN @dead::boolean THEN j.state IN ('cancelled', 'discarded') ELSE j.finalized_at IS NULL END
ORDER BY j.id DESC
LIMIT @max_rows::bigint;

-- name: JobRetryMany :one
-- Gives dead jobs all their tries again, from now on, and counts them: those with
-- the given ids, or all where there are none.
WITH retried AS (
    UPDATE recall.river_job AS j
    SET state = 'available',
        scheduled_at = statement_timestamp(),
        finalized_at = NULL,
        attempt = 0,
        metadata = j.metadata - 'river:rescue_count'
    WHERE j.state IN ('cancelled', 'discarded')
        AND j.finalized_at IS NOT NULL
        AND j.queue <> 'maintenance'
        AND (cardinality(@ids::bigint[]) = 0 OR j.id = ANY (@ids::bigint[]))
    RETURNING j.id
)
SELECT count(*) FROM retried;

-- name: JobDeleteByQueue :exec
-- Removes the jobs of a queue that nobody will work again.
DELETE FROM recall.river_job AS j
WHERE j.queue = @queue::text;

-- name: JobCountGivenUp :one
-- Counts those of given messages that have a dead job of a queue and no other one
-- that is not done. river_job_args_index.
SELECT count(*)
FROM unnest(@message_ids::text[]) AS i (message_id)
CROSS JOIN LATERAL (SELECT jsonb_build_object('messageIds', jsonb_build_array(i.message_id)) AS args) AS n
WHERE EXISTS (
        SELECT FROM recall.river_job AS j
        WHERE j.args @> n.args AND j.queue = @queue::text AND j.state IN ('cancelled', 'discarded')
    )
    AND NOT EXISTS (
        SELECT FROM recall.river_job AS j
        WHERE j.args @> n.args AND j.queue = @queue::text AND j.finalized_at IS NULL
    );
