-- Removes from an index the vectors of given messages that are of another text
-- than the one with the hash beside them. An empty hash removes all.
CREATE OR REPLACE FUNCTION recall.forget_embeddings(
    of_index recall.embedding_indexes, message_ids text[], text_hashes bytea[]
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format(
        $sql$
        DELETE FROM recall.%I AS e
        USING unnest($1, $2) AS n (message_id, text_hash)
        WHERE e.message_id = n.message_id AND e.text_hash <> n.text_hash
        $sql$,
        'embeddings_' || of_index.id
    ) USING message_ids, text_hashes;
END
$$;
