-- name: APIKeyCreate :one
-- Notes a new key. It never expires without expires_in_seconds.
INSERT INTO recall.api_keys AS k (name, secret_hash, admin, resource, prefix, read_only, created_at, expires_at)
VALUES (
    @name::text,
    @secret_hash::bytea,
    @admin::boolean,
    nullif(@resource::text, ''),
    nullif(@prefix::text, ''),
    @read_only::boolean,
    date_trunc('milliseconds', statement_timestamp()),
    date_trunc('milliseconds', statement_timestamp() + make_interval(secs => sqlc.narg('expires_in_seconds')::float8))
)
RETURNING
    k.id,
    k.created_at,
    k.expires_at;

-- name: APIKeyList :many
-- All keys, the oldest first.
SELECT
    k.id,
    k.name,
    k.admin,
    coalesce(k.resource, '')::text AS resource,
    coalesce(k.prefix, '')::text AS prefix,
    k.read_only,
    k.created_at,
    k.expires_at,
    k.revoked_at,
    k.last_used_at
FROM recall.api_keys AS k
ORDER BY k.id;

-- name: APIKeyGet :one
-- The key with the given hash. No row: there is none. api_keys_secret_hash_key.
SELECT
    k.id,
    k.name,
    k.admin,
    coalesce(k.resource, '')::text AS resource,
    coalesce(k.prefix, '')::text AS prefix,
    k.read_only,
    k.created_at,
    k.expires_at,
    k.revoked_at,
    k.last_used_at
FROM recall.api_keys AS k
WHERE k.secret_hash = @secret_hash::bytea;

-- name: APIKeyExists :one
-- Whether there has ever been a key.
SELECT EXISTS (SELECT FROM recall.api_keys);

-- name: APIKeyRevoke :execrows
-- Ends a key, unless it is revoked already. No row: there is none with this id.
UPDATE recall.api_keys AS k
SET revoked_at = coalesce(k.revoked_at, date_trunc('milliseconds', statement_timestamp()))
WHERE k.id = @id::bigint;

-- name: APIKeyUse :exec
-- Notes that a key was used, unless that was noted less than interval_seconds ago.
UPDATE recall.api_keys AS k
SET last_used_at = date_trunc('milliseconds', statement_timestamp())
WHERE k.id = @id::bigint
    AND (
        k.last_used_at IS NULL
        OR k.last_used_at <= statement_timestamp() - make_interval(secs => @interval_seconds::float8)
    );
