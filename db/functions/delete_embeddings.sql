-- Removes from an index the vectors of threads, and counts them. The foreign keys
-- would do it too, but message by message.
CREATE OR REPLACE FUNCTION recall.delete_embeddings(
    of_index recall.embedding_indexes, thread_ids text[]
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    deleted bigint;
BEGIN
    EXECUTE format('DELETE FROM recall.%I AS e WHERE e.thread_id = ANY ($1)', 'embeddings_' || of_index.id)
    USING thread_ids;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$;
