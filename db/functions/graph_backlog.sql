-- The resources with vectors that an index's graph should have but does not, and
-- how many. Resources of up to 5,000 vectors do without the graph, as comparing
-- all is faster up to there; of larger ones the last 500 may be left out, which
-- searches compare too. Where the index's graph is 'all', no vector may. Reads
-- one index of the table from end to end.
CREATE OR REPLACE FUNCTION recall.graph_backlog(of_index recall.embedding_indexes)
RETURNS TABLE (resource_id text, vectors bigint)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF of_index.graph = 'none' THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        $sql$
        SELECT e.resource_id, count(*) FILTER (WHERE NOT e.in_graph)
        FROM recall.%I AS e
        GROUP BY e.resource_id
        HAVING count(*) > $1 AND count(*) FILTER (WHERE NOT e.in_graph) > $2
        ORDER BY e.resource_id
        $sql$,
        'embeddings_' || of_index.id
    ) USING
        CASE of_index.graph WHEN 'large' THEN 5000 ELSE 0 END,
        CASE of_index.graph WHEN 'large' THEN 500 ELSE 0 END;
END
$$;
