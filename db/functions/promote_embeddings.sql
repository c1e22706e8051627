-- Puts up to max_rows vectors of a resource into an index's graph, and counts
-- them: 0 when all are there. About 1 ms each, so take few at a time. Vectors
-- that others are writing are left for the next time.
CREATE OR REPLACE FUNCTION recall.promote_embeddings(
    of_index recall.embedding_indexes, of_resource_id text, max_rows integer
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    promoted bigint;
BEGIN
    EXECUTE format(
        $sql$
        WITH chosen AS MATERIALIZED (
            SELECT e.message_id, e.chunk
            FROM recall.%1$I AS e
            WHERE e.resource_id = $1 AND NOT e.in_graph
            LIMIT $2
            FOR UPDATE SKIP LOCKED
        )
        UPDATE recall.%1$I AS e
        SET in_graph = true
        FROM chosen AS c
        WHERE e.message_id = c.message_id AND e.chunk = c.chunk
        $sql$,
        'embeddings_' || of_index.id
    ) USING of_resource_id, max_rows;
    GET DIAGNOSTICS promoted = ROW_COUNT;
    RETURN promoted;
END
$$;
