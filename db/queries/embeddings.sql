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
-- Counts the messages of a scope that an index has no vectors of yet: the named
-- one or, where the name is empty, the one that searches with vectors of the model
-- use (search_positions) or, where there is none, the live one. No row: no such
-- index.
SELECT
    CASE
        WHEN recall.reached(@resource_id::text, @reach::text[])
            THEN recall.pending_embeddings(i, @thread_id::text, @resource_id::text)
        ELSE 0
    END::bigint AS pending
FROM recall.embedding_indexes AS i
WHERE i.id = (
    SELECT u.id
    FROM recall.embedding_indexes AS u
    CROSS JOIN LATERAL (SELECT u.model = @model::text AND u.dimensions = @dimensions::integer AS is_ours) AS o
    WHERE CASE
        WHEN @index_name::text <> '' THEN u.name = @index_name::text
        ELSE u.state = 'live' OR (u.state = 'retired' AND o.is_ours)
    END
    ORDER BY o.is_ours DESC, u.state = 'live' DESC, u.live_at DESC
    LIMIT 1
);

-- name: EmbeddingDeleteByThreads :one
-- Removes the vectors of threads, which the caller has locked, from every index, and
-- counts them.
SELECT coalesce(sum(recall.delete_embeddings(i, @thread_ids::text[])), 0)::bigint
FROM recall.embedding_indexes AS i;
