-- How many messages of a scope (the thread of_thread_id or, where that is empty,
-- all threads of of_resource_id) have a text but no entry in the index yet. Reads
-- all messages of the scope.
CREATE OR REPLACE FUNCTION recall.pending_embeddings(
    of_index recall.embedding_indexes, of_thread_id text, of_resource_id text
) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    pending bigint;
BEGIN
    EXECUTE format(
        $sql$
        SELECT count(*)
        FROM (
            SELECT m.content
            FROM recall.messages AS m
            WHERE m.%2$I = $1
                AND m.role IN ('user', 'assistant')
                AND NOT EXISTS (SELECT FROM recall.%1$I AS e WHERE e.message_id = m.id)
            OFFSET 0
        ) AS m
        WHERE EXISTS (SELECT FROM jsonb_array_elements_text(recall.message_texts(m.content)) AS t (words) WHERE t.words ~ '\S')
        $sql$,
        'embeddings_' || of_index.id,
        CASE WHEN of_thread_id <> '' THEN 'thread_id' ELSE 'resource_id' END
    )
    INTO pending
    USING CASE WHEN of_thread_id <> '' THEN of_thread_id ELSE of_resource_id END;
    RETURN pending;
END
$$;
