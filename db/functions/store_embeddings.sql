-- Stores the vectors of messages in an index. Row i is chunk chunks[i] of message
-- message_ids[i], whose text has the hash text_hashes[i]; its vector is the next
-- `dimensions` numbers of `numbers` where has_vectors[i], and NULL, for a text
-- without one, where not. Messages that are gone get none, nor do those that have
-- vectors already (forget_embeddings removes those of an older text).
CREATE OR REPLACE FUNCTION recall.store_embeddings(
    of_index recall.embedding_indexes,
    message_ids text[],
    chunks smallint[],
    text_hashes bytea[],
    has_vectors boolean[],
    numbers real[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format(
        $sql$
        INSERT INTO recall.%1$I (message_id, chunk, thread_id, resource_id, text_hash, embedding)
        SELECT
            m.id, n.chunk, m.thread_id, m.resource_id, n.text_hash,
            CASE WHEN n.has_vector THEN $5[n.place * %2$s - %3$s : n.place * %2$s]::vector END
        FROM (
            SELECT u.*, sum(u.has_vector::integer) OVER (ORDER BY u.n)::integer AS place
            FROM unnest($1, $2, $3, $4) WITH ORDINALITY AS u (message_id, chunk, text_hash, has_vector, n)
        ) AS n
        CROSS JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = n.message_id OFFSET 0) AS m
        ON CONFLICT ON CONSTRAINT %4$I DO NOTHING
        $sql$,
        'embeddings_' || of_index.id, of_index.dimensions, of_index.dimensions - 1, 'embeddings_' || of_index.id || '_pkey'
    ) USING message_ids, chunks, text_hashes, has_vectors, numbers;
END
$$;
