-- Gives the messages ids[i], in an index, the vectors of the messages
-- source_ids[i], whose texts they have.
CREATE OR REPLACE FUNCTION recall.copy_embeddings(
    of_index recall.embedding_indexes, source_ids text[], ids text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format(
        $sql$
        INSERT INTO recall.%1$I (message_id, chunk, thread_id, resource_id, text_hash, embedding)
        SELECT m.id, e.chunk, m.thread_id, m.resource_id, e.text_hash, e.embedding
        FROM unnest($1, $2) AS n (source_id, id)
        CROSS JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = n.id OFFSET 0) AS m
        CROSS JOIN LATERAL (SELECT s.* FROM recall.%1$I AS s WHERE s.message_id = n.source_id OFFSET 0) AS e
        $sql$,
        'embeddings_' || of_index.id
    ) USING source_ids, ids;
END
$$;
