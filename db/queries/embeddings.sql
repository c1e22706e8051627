-- name: EmbeddingIndexLive :one
-- The index that searches use. No row: none is live.
SELECT i.*
FROM recall.embedding_indexes AS i
WHERE i.state = 'live';

-- name: EmbeddingForgetMany :exec
-- Removes the vectors of messages whose text has changed, from every index.
SELECT recall.forget_embeddings(i, @message_ids::text[], @text_hashes::bytea[])
FROM recall.embedding_indexes AS i;

-- name: EmbeddingListStored :many
-- Of the given messages those whose text, by its hash, every index of the model
-- that is in use has the vectors of.
SELECT e.message_id::text AS message_id
FROM recall.embedding_indexes AS i
CROSS JOIN LATERAL recall.embedded_messages(i, @message_ids::text[], @text_hashes::bytea[]) AS e (message_id)
WHERE i.model = @model::text AND i.dimensions = @dimensions::integer AND i.state <> 'retired'
GROUP BY e.message_id
HAVING count(*) = (
    SELECT count(*)
    FROM recall.embedding_indexes AS u
    WHERE u.model = @model::text AND u.dimensions = @dimensions::integer AND u.state <> 'retired'
);

-- name: EmbeddingStoreMany :exec
-- Stores vectors in every index of the model that is in use.
SELECT recall.store_embeddings(
    i, @message_ids::text[], @chunks::smallint[], @text_hashes::bytea[], @has_vectors::boolean[], @numbers::real[]
)
FROM recall.embedding_indexes AS i
WHERE i.model = @model::text AND i.dimensions = @dimensions::integer AND i.state <> 'retired';

-- name: EmbeddingCopyMany :exec
-- Gives the messages of a clone the vectors of their sources, in every index.
SELECT recall.copy_embeddings(i, @source_ids::text[], @ids::text[])
FROM recall.embedding_indexes AS i
WHERE i.state <> 'retired';

-- name: EmbeddingPendingCount :one
-- Counts the messages of a scope that an index, or the live one where the name
-- is empty, has no vectors of yet. No row: no such index.
SELECT recall.pending_embeddings(i, @thread_id::text, @resource_id::text)::bigint AS pending
FROM recall.embedding_indexes AS i
WHERE (@index_name::text = '' AND i.state = 'live') OR i.name = @index_name::text;
