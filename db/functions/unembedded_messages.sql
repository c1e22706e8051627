-- The next max_rows messages, by id, after after_id that have a text but no entry
-- in an index.
CREATE OR REPLACE FUNCTION recall.unembedded_messages(
    of_index recall.embedding_indexes, after_id text, max_rows integer
) RETURNS SETOF text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        $sql$
        SELECT m.id
        FROM recall.messages AS m
        WHERE m.id > $1 COLLATE "C"
            AND m.role IN ('user', 'assistant')
            AND NOT EXISTS (SELECT FROM recall.%I AS e WHERE e.message_id = m.id)
            AND EXISTS (SELECT FROM jsonb_array_elements_text(recall.message_texts(m.content)) AS t (words) WHERE t.words ~ '\S')
        ORDER BY m.id
        LIMIT $2
        $sql$,
        'embeddings_' || of_index.id
    ) USING after_id, max_rows;
END
$$;
