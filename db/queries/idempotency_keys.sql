-- name: IdempotencyKeyClaim :execrows
-- Takes a key that is free, or was taken longer ago than it counts. No row: it is
-- taken. Waits for a transaction that has just taken it, and locks its row in
-- either case, so that nobody removes it meanwhile.
INSERT INTO recall.idempotency_keys AS k (key, request_hash, created_at)
VALUES (@key::text, @request_hash::bytea, date_trunc('milliseconds', statement_timestamp()))
ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO UPDATE
SET request_hash = excluded.request_hash,
    status = NULL,
    answer = NULL,
    etag = '',
    resource_ids = '{}',
    created_at = excluded.created_at
WHERE k.created_at <= statement_timestamp() - make_interval(secs => @lifetime_seconds::float8);

-- name: IdempotencyKeyGet :one
-- The answer under a key that still counts.
SELECT
    k.request_hash,
    k.status::smallint AS status,
    k.etag,
    k.answer::bytea AS answer
FROM recall.idempotency_keys AS k
WHERE k.key = @key::text
    AND k.created_at > statement_timestamp() - make_interval(secs => @lifetime_seconds::float8);

-- name: IdempotencyKeySettle :exec
-- Notes the answer under a key that this transaction has taken.
UPDATE recall.idempotency_keys AS k
SET status = @status::smallint,
    answer = @answer::bytea,
    etag = @etag::text,
    resource_ids = @resource_ids::text[]
WHERE k.key = @key::text;

-- name: IdempotencyKeyDeleteExpired :execrows
-- Removes up to max_rows keys that count no longer, but for those that are being
-- taken again. idempotency_keys_created_at_idx.
DELETE FROM recall.idempotency_keys AS k
WHERE k.key = ANY (ARRAY(
        SELECT e.key
        FROM recall.idempotency_keys AS e
        WHERE e.created_at <= statement_timestamp() - make_interval(secs => @lifetime_seconds::float8)
        ORDER BY e.created_at
        LIMIT @max_rows::bigint
        FOR UPDATE SKIP LOCKED
    ));
