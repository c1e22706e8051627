-- name: EmbeddingIndexList :many
-- All indexes, in the order of their creation.
SELECT i.*
FROM recall.embedding_indexes AS i
ORDER BY i.id;

-- name: EmbeddingIndexGet :one
SELECT i.*
FROM recall.embedding_indexes AS i
WHERE i.name = @name::text;

-- name: EmbeddingIndexGetLive :one
-- The index that searches use. No row: none is live.
SELECT i.*
FROM recall.embedding_indexes AS i
WHERE i.state = 'live';

-- name: EmbeddingIndexLockMany :many
-- All indexes, locked, the one that was live last first.
SELECT i.*
FROM recall.embedding_indexes AS i
ORDER BY i.live_at DESC NULLS LAST, i.id
FOR UPDATE;

-- name: EmbeddingIndexCreate :one
INSERT INTO recall.embedding_indexes AS i
    (name, model, dimensions, length_prior, graph, hnsw_m, hnsw_ef_construction, created_at)
VALUES (
    @name::text,
    @model::text,
    @dimensions::integer,
    @length_prior::boolean,
    @graph::text,
    @hnsw_m::integer,
    @hnsw_ef_construction::integer,
    date_trunc('milliseconds', statement_timestamp())
)
RETURNING i.*;

-- name: EmbeddingIndexCreateTable :exec
SELECT recall.create_embedding_table(i)
FROM recall.embedding_indexes AS i
WHERE i.name = @name::text;

-- name: EmbeddingIndexSetState :exec
-- Moves an index to a state; what becomes live does so now.
UPDATE recall.embedding_indexes AS i
SET state = @state::text,
    live_at = CASE WHEN @state::text = 'live' THEN date_trunc('milliseconds', statement_timestamp()) ELSE i.live_at END
WHERE i.name = @name::text;

-- name: EmbeddingIndexDropTable :exec
SELECT recall.drop_embedding_table(i)
FROM recall.embedding_indexes AS i
WHERE i.name = @name::text;

-- name: EmbeddingIndexDelete :exec
DELETE FROM recall.embedding_indexes AS i
WHERE i.name = @name::text;

-- name: EmbeddingIndexCoverage :one
-- How many messages an index has, and how many with a text it lacks. No row: no
-- such index.
SELECT c.embedded::bigint AS embedded, c.missing::bigint AS missing
FROM recall.embedding_indexes AS i
CROSS JOIN LATERAL recall.index_coverage(i) AS c
WHERE i.name = @name::text;

-- name: EmbeddingIndexListMissing :many
-- The next messages, by id, that have a text but no entry in an index.
SELECT u.message_id::text AS message_id
FROM recall.embedding_indexes AS i
CROSS JOIN LATERAL recall.unembedded_messages(i, @after_id::text, @max_rows::integer) AS u (message_id)
WHERE i.name = @name::text;

-- name: EmbeddingIndexTryBackfill :one
-- Says whether nobody else backfills an index, and keeps others from it until the
-- transaction ends. Meanwhile it holds neither a table nor a snapshot.
SELECT pg_try_advisory_xact_lock(hashtext('pgrecall backfill'), hashtext(@name::text));

-- name: EmbeddingIndexStayIdle :exec
-- Lets this transaction be idle for as long as it takes.
SELECT set_config('idle_in_transaction_session_timeout', '0', true);

-- name: GraphBacklogList :many
-- The resources with vectors that a graph should have but does not: that of the
-- named index or, where the name is empty, those of all that are not retired.
SELECT i.name, g.resource_id::text AS resource_id, g.vectors::bigint AS vectors
FROM recall.embedding_indexes AS i
CROSS JOIN LATERAL recall.graph_backlog(i) AS g
WHERE CASE WHEN @name::text <> '' THEN i.name = @name::text ELSE i.state <> 'retired' END
ORDER BY i.id, g.resource_id;

-- name: GraphPromote :one
-- Puts some vectors of a resource into an index's graph, and counts them. No row:
-- no such index.
SELECT recall.promote_embeddings(i, @resource_id::text, @max_rows::integer)::bigint AS promoted
FROM recall.embedding_indexes AS i
WHERE i.name = @name::text;

-- name: EmbeddingIndexLockWriters :exec
-- Keeps writers out of the tables that an index's table refers to, in the order in
-- which writers take them, so that making it cannot deadlock with them.
LOCK TABLE recall.threads, recall.messages IN SHARE ROW EXCLUSIVE MODE;

-- name: EmbeddingIndexWaitBriefly :exec
-- Ends a wait for a lock in this transaction sooner than a deadlock is looked for.
SELECT set_config('lock_timeout', '200ms', true);

-- name: EmbeddingIndexLockAll :exec
-- Keeps all others out of these tables, as dropping a table that refers to them
-- does. Readers take the two in any order.
LOCK TABLE recall.threads, recall.messages IN ACCESS EXCLUSIVE MODE;
