-- The `wanted` messages of a scope (the thread of_thread_id or, where that is
-- empty, all threads of of_resource_id) nearest to a vector, and all that are as
-- near as the last of them: never fewer than `wanted` where the scope holds that
-- many. similarity is the inner product with the message's nearest chunk.
--
-- Where `filtered`, the messages have a role among `roles` (empty: any),
-- starts_at <= created_at < ends_at, metadata that satisfies `matching` and
-- lexemes that satisfy `phrase` (NULL: any).
--
-- plan is 'exact' where all vectors of the scope, or of what passes in it, were
-- compared, which is fastest and right up to exact_limit of them. Beyond that it
-- is 'hnsw': the graph gives the nearest of the scope, and the rows that are not
-- in the graph yet are compared; should that fall short, all are. visited counts
-- the vectors compared or given by the graph.
--
-- PL/pgSQL, since the table depends on the index, and the plan on the scope's
-- size, which the planner misjudges. EXECUTE plans with the values at hand.
-- "+ 0" keeps the graph out of an exact search.
CREATE OR REPLACE FUNCTION recall.nearest_messages(
    of_thread_id text,
    of_resource_id text,
    scope_size bigint,
    index_id smallint,
    query_vector vector,
    wanted integer,
    exact_limit bigint,
    filtered boolean,
    roles text[],
    matching jsonpath,
    phrase tsquery,
    starts_at timestamptz,
    ends_at timestamptz
) RETURNS TABLE (message_id text, similarity double precision, plan text, visited bigint)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    index_table  CONSTANT text := 'embeddings_' || index_id;
    scope_column CONSTANT text := CASE WHEN of_thread_id <> '' THEN 'thread_id' ELSE 'resource_id' END;
    scope_id     CONSTANT text := CASE WHEN of_thread_id <> '' THEN of_thread_id ELSE of_resource_id END;
    vector_type  text;
    passing      text := '';
    passing_size bigint := scope_size;
    ids          text[];
    similarities double precision[];
    of_graph     bigint;
    in_graph     boolean := false; -- whether the graph has any of the scope
BEGIN
    SELECT format_type(a.atttypid, a.atttypmod) INTO STRICT vector_type
    FROM pg_attribute AS a
    WHERE a.attrelid = ('recall.' || index_table)::regclass AND a.attname = 'embedding';

    IF filtered THEN
        -- The times stand outside, as they would tempt the planner to walk an index
        -- in their order.
        passing := format(
            $sql$
            SELECT p.id
            FROM (
                SELECT m.id, m.created_at
                FROM recall.messages AS m
                WHERE recall.scope_keys(m.thread_id, m.resource_id) @> ARRAY[%L || $1]
                    AND ($7 IS NULL OR recall.message_metadata(m.content) @@ $7)
                    AND ($8 IS NULL OR m.lexemes @@ $8)
                    AND (cardinality($4) = 0 OR m.role = ANY ($4))
                OFFSET 0
            ) AS p
            WHERE p.created_at >= $5 AND p.created_at < $6
            $sql$,
            left(scope_column, 1)
        );
        IF scope_size > exact_limit THEN
            EXECUTE format('SELECT count(*) FROM (%s LIMIT %s) AS p WHERE $2 IS NOT NULL AND $3 > 0', passing, exact_limit + 1)
            INTO passing_size
            USING scope_id, query_vector, wanted, roles, starts_at, ends_at, matching, phrase;
        END IF;
    END IF;

    IF scope_size > exact_limit AND passing_size > exact_limit THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM recall.%I AS e WHERE e.%I = $1 AND e.in_graph)', index_table, scope_column)
        INTO in_graph
        USING scope_id;
    END IF;
    IF in_graph THEN
        PERFORM set_config('hnsw.iterative_scan', 'relaxed_order', true);
        PERFORM set_config('hnsw.ef_search', least(1000, greatest(100, 4 * wanted))::text, true);
        PERFORM set_config('hnsw.max_scan_tuples', '100000', true);
        PERFORM set_config('hnsw.scan_mem_multiplier', '4', true);
        -- A row of the graph is a chunk: twice as many, so that they are of enough
        -- messages. || '' keeps the scope's btree out, which gives no order. A graph
        -- that gives fewer has ended early: what it has is not what is nearest. IS
        -- TRUE keeps what passes from being joined: it is read once and hashed.
        EXECUTE format(
            $sql$
            SELECT array_agg(c.message_id), array_agg(c.similarity), max(c.visited), max(c.of_graph)
            FROM (
                SELECT
                    n.message_id,
                    max(n.similarity) AS similarity,
                    sum(count(*)) OVER ()::bigint AS visited,
                    sum(count(*) FILTER (WHERE n.of_graph)) OVER ()::bigint AS of_graph
                FROM (
                    (
                        SELECT e.message_id, -(e.embedding <#> $2::%1$s) AS similarity, true AS of_graph
                        FROM recall.%2$I AS e
                        WHERE e.in_graph AND e.%3$I || '' = $1 %4$s
                        ORDER BY e.embedding <#> $2::%1$s
                        LIMIT 2 * $3
                    )
                    UNION ALL
                    (
                        SELECT e.message_id, -(e.embedding <#> $2::%1$s) + 0, false
                        FROM recall.%2$I AS e
                        WHERE NOT e.in_graph AND e.%3$I = $1 AND e.embedding IS NOT NULL %4$s
                    )
                ) AS n
                GROUP BY n.message_id
                ORDER BY similarity DESC
                FETCH FIRST $3 ROWS WITH TIES
            ) AS c
            $sql$,
            vector_type, index_table, scope_column, CASE WHEN filtered THEN 'AND (e.message_id IN (' || passing || ')) IS TRUE' ELSE '' END
        )
        INTO ids, similarities, visited, of_graph
        USING scope_id, query_vector, wanted, roles, starts_at, ends_at, matching, phrase;
        IF of_graph >= 2 * wanted AND cardinality(ids) >= wanted THEN
            RETURN QUERY SELECT i.id, i.s, 'hnsw', nearest_messages.visited FROM unnest(ids, similarities) AS i (id, s);
            RETURN;
        END IF;
    END IF;

    RETURN QUERY EXECUTE format(
        $sql$
        WITH compared AS MATERIALIZED (
            SELECT e.message_id, e.chunk, -(e.embedding <#> $2::%1$s) + 0 AS similarity
            FROM %2$s
            WHERE e.embedding IS NOT NULL
        ),
        -- What is less near than `wanted` messages by their first chunks alone is not
        -- among the nearest: grouping all would cost twice what comparing them does.
        bound AS (
            SELECT CASE WHEN count(*) = $3 THEN min(f.similarity) ELSE '-Infinity' END AS similarity
            FROM (SELECT c.similarity FROM compared AS c WHERE c.chunk = 0 ORDER BY c.similarity DESC LIMIT $3) AS f
        )
        SELECT c.message_id, max(c.similarity) AS similarity, 'exact', (SELECT count(*) FROM compared)
        FROM compared AS c
        WHERE c.similarity >= (SELECT b.similarity FROM bound AS b)
        GROUP BY c.message_id
        ORDER BY similarity DESC
        FETCH FIRST $3 ROWS WITH TIES
        $sql$,
        vector_type,
        -- Of few that pass each is looked up, whatever the planner believes.
        CASE
            WHEN filtered THEN
                format('(%s) AS p CROSS JOIN LATERAL (SELECT f.* FROM recall.%I AS f WHERE f.message_id = p.id OFFSET 0) AS e', passing, index_table)
            ELSE format('(SELECT f.* FROM recall.%I AS f WHERE f.%I = $1) AS e', index_table, scope_column)
        END
    ) USING scope_id, query_vector, wanted, roles, starts_at, ends_at, matching, phrase;
END
$$;
