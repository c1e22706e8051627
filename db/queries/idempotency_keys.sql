-- name: IdempotencyKeyClaim :execrows
-- Takes a key of a caller that is free, or was taken longer ago than it counts. No
-- row: it is taken. Waits for a transaction that has just taken it, and locks its row
-- in either case, so that nobody removes it meanwhile.
INSERT INTO recall.idempotency_keys AS k (caller, key, request_hash, created_at)
VALUES (@caller::text, @key::text, @request_hash::bytea, date_trunc('milliseconds', statement_timestamp()))
ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO UPDATE
SET request_hash = excluded.request_hash,
    status = NULL,
    answer = NULL,
    etag = '',
    resource_ids = '{}',
    created_at = excluded.created_at
WHERE k.created_at <= statement_timestamp() - make_interval(secs => @lifetime_seconds::float8);

-- name: IdempotencyKeyGet :one
-- The answer under a key of a caller that still counts.
SELECT
    k.request_hash,
    k.status::smallint AS status,
    k.etag,
    k.answer::bytea AS answer
FROM recall.idempotency_keys AS k
WHERE k.caller = @caller::text
    AND k.key = @key::text
    AND k.created_at > statement_timestamp() - make_interval(secs => @lifetime_seconds::float8);

-- name: IdempotencyKeySettle :exec
-- Notes the answer under a key of a caller that this transaction has taken. Whose
-- data it may hold are those of the given resources, and of the owners of the given
-- threads, that are reached.
UPDATE recall.idempotency_keys AS k
SET status = @status::smallint,
    answer = @answer::bytea,
    etag = @etag::text,
    resource_ids = ARRAY(
        SELECT i.id
        FROM unnest(@resource_ids::text[]) AS i (id)
        WHERE recall.reached(i.id, @reach::text[])
        UNION
        SELECT t.resource_id
        FROM unnest(@thread_ids::text[]) AS n (id)
        CROSS JOIN LATERAL (SELECT h.resource_id FROM recall.threads AS h WHERE h.id = n.id OFFSET 0) AS t
        WHERE recall.reached(t.resource_id, @reach::text[])
        ORDER BY 1
    )
WHERE k.caller = @caller::text
    AND k.key = @key::text;

-- name: IdempotencyKeyDeleteExpired :execrows
-- Removes up to max_rows keys that count no longer, but for those that are being
-- taken again. idempotency_keys_created_at_idx.
DELETE FROM recall.idempotency_keys AS k
WHERE k.ctid = ANY (ARRAY(
        SELECT e.ctid
        FROM recall.idempotency_keys AS e
        WHERE e.created_at <= statement_timestamp() - make_interval(secs => @lifetime_seconds::float8)
        ORDER BY e.created_at
        LIMIT @max_rows::bigint
        FOR UPDATE SKIP LOCKED
    ));

-- name: ErasureLock :exec
-- Lets one erasure run at a time: two of them would each find what the other has
-- locked, and keys and clones may be of several resources.
SELECT pg_advisory_xact_lock(hashtextextended('pgrecall erasure', 0));

-- name: IdempotencyKeyLockManyOfResource :exec
-- Locks the keys under which there may be data of a resource, in the order of the
-- keys. Who takes one that has expired locks it before any thread, and so must who
-- removes it. idempotency_keys_resource_ids_idx.
SELECT k.key
FROM recall.idempotency_keys AS k
WHERE k.resource_ids @> ARRAY[@resource_id::text]
ORDER BY k.caller, k.key
FOR UPDATE;

-- name: IdempotencyKeyDeleteByResource :one
-- Removes the keys under which there may be data of a resource, but for those that are
-- being taken again: who does that waits for the resource's threads. held counts
-- these too. idempotency_keys_resource_ids_idx.
WITH removed AS (
    DELETE FROM recall.idempotency_keys AS k
    WHERE k.ctid = ANY (ARRAY(
            SELECT f.ctid
            FROM recall.idempotency_keys AS f
            WHERE f.resource_ids @> ARRAY[@resource_id::text]
            FOR UPDATE SKIP LOCKED
        ))
    RETURNING k.key
)
SELECT
    (SELECT count(*) FROM removed)::bigint AS removed,
    (SELECT count(*) FROM recall.idempotency_keys AS k WHERE k.resource_ids @> ARRAY[@resource_id::text])::bigint AS held;
