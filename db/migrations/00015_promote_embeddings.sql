-- +goose Up

-- Which vectors of the index are in its graph: of large resources, all or none.
ALTER TABLE recall.embedding_indexes ADD COLUMN graph text NOT NULL DEFAULT 'large';
ALTER TABLE recall.embedding_indexes
    ADD CONSTRAINT embedding_indexes_graph_check CHECK (graph IN ('large', 'all', 'none'));

-- +goose StatementBegin
-- The resources with vectors that an index's graph should have but does not, and
-- how many. Resources of up to 5,000 vectors do without the graph, as comparing
-- all is faster up to there; of larger ones the last 500 may be left out, which
-- searches compare too. Where the index's graph is 'all', no vector may. Reads
-- one index of the table from end to end.
CREATE FUNCTION recall.graph_backlog(of_index recall.embedding_indexes)
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
-- +goose StatementEnd

-- +goose StatementBegin
-- Puts up to max_rows vectors of a resource into an index's graph, and counts
-- them: 0 when all are there. About 1 ms each, so take few at a time. Vectors
-- that others are writing are left for the next time.
CREATE FUNCTION recall.promote_embeddings(
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
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION recall.promote_embeddings(recall.embedding_indexes, text, integer);
DROP FUNCTION recall.graph_backlog(recall.embedding_indexes);
ALTER TABLE recall.embedding_indexes DROP COLUMN graph;
