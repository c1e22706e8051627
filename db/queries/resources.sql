-- name: ResourceHeld :many
-- What is held of a resource, a row a table.
SELECT h.table_name::text AS table_name, h.held::bigint AS held
FROM recall.held(@resource_id::text) AS h;

-- name: ResourceActivity :one
-- When a resource was first and last heard of; any time where it has no threads.
-- By the ends of threads_resource_created_at_idx, threads_resource_updated_at_idx
-- and messages_resource_order_idx.
SELECT
    coalesce(least(
        (SELECT t.created_at FROM recall.threads AS t WHERE t.resource_id = @resource_id::text ORDER BY t.created_at LIMIT 1),
        (SELECT m.created_at FROM recall.messages AS m WHERE m.resource_id = @resource_id::text ORDER BY m.created_at LIMIT 1)
    ), 'epoch')::timestamptz AS first_at,
    coalesce(greatest(
        (SELECT t.updated_at FROM recall.threads AS t WHERE t.resource_id = @resource_id::text ORDER BY t.updated_at DESC LIMIT 1),
        (SELECT m.created_at FROM recall.messages AS m WHERE m.resource_id = @resource_id::text ORDER BY m.created_at DESC LIMIT 1)
    ), 'epoch')::timestamptz AS last_at;

-- name: ResourceDelete :exec
-- Removes what is kept of a resource beside its threads and its working memory.
DELETE FROM recall.resources AS r
WHERE r.id = @id::text;

-- name: ErasureCount :one
-- How many erasures there were.
SELECT e.count
FROM recall.erasures AS e
WHERE e.single;

-- name: ErasureCountHold :one
-- The same, and none ends until the transaction does.
SELECT e.count
FROM recall.erasures AS e
WHERE e.single
FOR SHARE;

-- name: ErasureCountUp :one
-- Counts an erasure, and says when it was.
UPDATE recall.erasures AS e
SET count = e.count + 1
WHERE e.single
RETURNING date_trunc('milliseconds', statement_timestamp())::timestamptz AS erased_at;
