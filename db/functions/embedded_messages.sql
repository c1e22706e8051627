-- Of the given messages those that the index has the vectors of: of the text with
-- the hash given beside them.
CREATE OR REPLACE FUNCTION recall.embedded_messages(
    of_index recall.embedding_indexes, message_ids text[], text_hashes bytea[]
) RETURNS SETOF text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        $sql$
        SELECT n.message_id
        FROM unnest($1, $2) AS n (message_id, text_hash)
        CROSS JOIN LATERAL (
            SELECT e.text_hash FROM recall.%I AS e WHERE e.message_id = n.message_id AND e.chunk = 0 OFFSET 0
        ) AS e
        WHERE e.text_hash = n.text_hash
        $sql$,
        'embeddings_' || of_index.id
    ) USING message_ids, text_hashes;
END
$$;
