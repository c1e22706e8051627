-- How many messages an index has, and how many of those with a text it lacks.
-- Reads the whole index, and all messages it lacks.
CREATE OR REPLACE FUNCTION recall.index_coverage(of_index recall.embedding_indexes)
RETURNS TABLE (embedded bigint, missing bigint)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        $sql$
        SELECT
            (SELECT count(*) FROM recall.%1$I AS e WHERE e.chunk = 0),
            (
                SELECT count(*)
                FROM recall.messages AS m
                WHERE m.role IN ('user', 'assistant')
                    AND NOT EXISTS (SELECT FROM recall.%1$I AS e WHERE e.message_id = m.id)
                    AND EXISTS (
                        SELECT FROM jsonb_array_elements_text(recall.message_texts(m.content)) AS t (words) WHERE t.words ~ '\S'
                    )
            )
        $sql$,
        'embeddings_' || of_index.id
    );
END
$$;
