-- Drops the table of an index.
CREATE OR REPLACE FUNCTION recall.drop_embedding_table(of_index recall.embedding_indexes) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('DROP TABLE recall.%I', 'embeddings_' || of_index.id);
END
$$;
