-- name: EmbeddingForgetMany :exec
-- Removes the vectors of messages whose text has changed, from every index.
SELECT recall.forget_embeddings(i, @message_ids::text[], @text_hashes::bytea[])
FROM recall.embedding_indexes AS i;

-- name: EmbeddingListDue :many
-- The models whose vectors are due at once: those of the indexes in use, and the
-- given one, whose retired index is kept in step while there are servers with its
-- embedder. With each those of the given messages whose text, by its hash, an
-- index of the model lacks.
SELECT
    i.model,
    i.dimensions,
    coalesce(array_agg(DISTINCT d.message_id ORDER BY d.message_id) FILTER (WHERE d.message_id IS NOT NULL), '{}')::text[]
        AS message_ids
FROM recall.embedding_indexes AS i
LEFT JOIN LATERAL (
    SELECT n.message_id FROM unnest(@message_ids::text[]) AS n (message_id)
    EXCEPT
    SELECT e.message_id FROM recall.embedded_messages(i, @message_ids::text[], @text_hashes::bytea[]) AS e (message_id)
) AS d ON true
WHERE i.state <> 'retired' OR (i.model = @model::text AND i.dimensions = @dimensions::integer)
GROUP BY i.model, i.dimensions
ORDER BY i.model, i.dimensions;

-- name: EmbeddingStoreMany :one
-- Stores vectors in every index of the model, and counts these indexes.
SELECT count(recall.store_embeddings(
    i, @message_ids::text[], @chunks::smallint[], @text_hashes::bytea[], @has_vectors::boolean[], @numbers::real[]
)::text)
FROM recall.embedding_indexes AS i
WHERE i.model = @model::text AND i.dimensions = @dimensions::integer;

-- name: EmbeddingCopyMany :exec
-- Gives the messages of a clone the vectors of their sources, in every index.
SELECT recall.copy_embeddings(i, @source_ids::text[], @ids::text[])
FROM recall.embedding_indexes AS i;

-- name: EmbeddingPendingCount :one
-- Counts the messages of a scope that an index, or the live one where the name
-- is empty, has no vectors of yet. No row: no such index.
SELECT recall.pending_embeddings(i, @thread_id::text, @resource_id::text)::bigint AS pending
FROM recall.embedding_indexes AS i
WHERE (@index_name::text = '' AND i.state = 'live') OR i.name = @index_name::text;
