-- The vector that an index has of a message, of its first part where it was
-- embedded in several; NULL where it has none.
CREATE OR REPLACE FUNCTION recall.message_vector(of_index recall.embedding_indexes, of_message_id text) RETURNS vector
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    found vector;
BEGIN
    EXECUTE format(
        $sql$
        SELECT e.embedding::vector
        FROM recall.%I AS e
        WHERE e.message_id = $1 AND e.embedding IS NOT NULL
        ORDER BY e.chunk
        LIMIT 1
        $sql$,
        'embeddings_' || of_index.id
    )
    INTO found
    USING of_message_id;
    RETURN found;
END
$$;
