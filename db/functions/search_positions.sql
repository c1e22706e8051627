-- The messages of a scope that answer a question best, best first: exactly top_k
-- of them where the scope holds that many with a vector that pass the filters,
-- whatever the size of other scopes. The scope is the thread of_thread_id or,
-- where that is empty, all threads of of_resource_id.
--
-- similarity is the inner product of the question's vector and the message's
-- nearest chunk. words is the share of the question's lexemes that the message
-- and its neighbours have, rare ones counting most:
--
--   own(m)   = sum over the question's lexemes of idf * ts_rank(m, lexeme), by the
--              sum of idf, / (1 + lexemes(m) / 40) ^ .25
--   words(m) = own(m) + .2 * own(next turn)
--              + .1 * own(previous turn), or .7 * where that ends in a question mark
--   idf      = ln(1 + (N - df + .5) / (df + .5)) within the scope
--
-- score by search_mode: 'semantic' similarity; 'lexical' words - .05 where the
-- message ends in a question mark; 'hybrid' words + similarity - .05 where ...
-- for vectors with a length prior, and for others
--   words + .1 * max(0, .5 + z) * n / (n + 8) - .05 where ..., with z the
--   similarity in standard deviations from the mean of 200 vectors of the scope,
--   those of first chunks before others, and n = lexemes(m).
-- query_vector, of the model query_model, NULL leaves the vectors out. index_name
-- empty means the live index or, where that is of another model, the one of this
-- model that was live last: after a cut-over, servers of the old model go on with
-- the old index. Error PR404: there is no such index, or its vectors are of another
-- model or have other dimensions.
--
-- A part of the question in double quotes must occur as a phrase. A hit passes
-- the filters (message_passes) and has a similarity of at least threshold (NULL:
-- any). Scores are compared to nine decimals; ties go to the older message.
--
-- Scored exactly are the 300 (or 3 * top_k) best by words and the 100 (or
-- 2 * top_k) nearest, found as nearest_messages says, whose plan and visited are
-- given in each row. Rows are fetched by messages_content_idx for the question's
-- rarest lexemes, about fetch_limit of them; the most common lexemes, whose
-- shares ANALYZE knows, only score these rows.
CREATE OR REPLACE FUNCTION recall.search_positions(
    of_thread_id text,
    of_resource_id text,
    search_mode text,
    question text,
    query_vector vector,
    query_model text,
    index_name text,
    top_k integer,
    threshold double precision,
    roles text[],
    matching jsonpath,
    starts_at timestamptz,
    ends_at timestamptz
) RETURNS TABLE (
    thread_id text,
    created_at timestamptz,
    seq bigint,
    message_id text,
    score double precision,
    similarity double precision,
    words double precision,
    plan text,
    visited bigint
)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    fetch_limit  CONSTANT bigint := 8000;
    scope_key    CONSTANT text := CASE WHEN of_thread_id <> '' THEN 't' || of_thread_id ELSE 'r' || of_resource_id END;
    config       CONSTANT regconfig := recall.text_config();
    scope_size   bigint;
    used         recall.embedding_indexes;
    phrase       tsquery;
    filtered     boolean;
    near_ids     text[] := '{}';
    near_similarities float8[] := '{}';
    near_plan    text;
    near_visited bigint := 0;
    asked        text[];     -- the question's lexemes, rarest first
    shares       float8[];   -- their shares of all messages, 0 where not known
    complete     boolean[];  -- whether all their rows are fetched
    fetched      tsquery;
BEGIN
    IF of_thread_id <> '' THEN
        SELECT t.message_count INTO scope_size FROM recall.threads AS t WHERE t.id = of_thread_id;
    ELSE
        SELECT sum(t.message_count) INTO scope_size FROM recall.threads AS t WHERE t.resource_id = of_resource_id;
    END IF;
    scope_size := coalesce(scope_size, 0);
    SELECT i.* INTO used
    FROM recall.embedding_indexes AS i
    WHERE CASE WHEN index_name <> '' THEN i.name = index_name ELSE i.state = 'live' OR (i.state = 'retired' AND query_vector IS NOT NULL) END
        AND (query_vector IS NULL OR (i.model = query_model AND i.dimensions = vector_dims(query_vector)))
    ORDER BY i.state = 'live' DESC, i.live_at DESC
    LIMIT 1;
    IF used.id IS NULL THEN
        RAISE EXCEPTION 'no embedding index "%" of the model "%" with % dimensions', index_name, query_model, vector_dims(query_vector)
            USING ERRCODE = 'PR404';
    END IF;

    IF search_mode <> 'semantic' THEN
        SELECT string_agg(DISTINCT '(' || p.query::text || ')', ' & ')::tsquery INTO phrase
        FROM (
            SELECT recall.phrase_query(config, m.part[1]) AS query
            FROM regexp_matches(question, '"([^"]+)"', 'g') AS m (part)
        ) AS p
        WHERE numnode(p.query) > 0; -- stop words alone ask for nothing
    END IF;
    filtered := matching IS NOT NULL OR phrase IS NOT NULL OR roles <> '{}'
        OR starts_at > '-infinity' OR ends_at < 'infinity';

    IF query_vector IS NOT NULL AND search_mode <> 'lexical' THEN
        SELECT coalesce(array_agg(n.message_id), '{}'), coalesce(array_agg(n.similarity), '{}'), max(n.plan), coalesce(max(n.visited), 0)
        INTO near_ids, near_similarities, near_plan, near_visited
        FROM recall.nearest_messages(
            of_thread_id, of_resource_id, scope_size, used.id, query_vector,
            CASE WHEN search_mode = 'semantic' THEN top_k ELSE greatest(100, 2 * top_k) END,
            CASE WHEN search_mode = 'semantic' THEN 5000 ELSE 30000 END,
            filtered, roles, matching, phrase, starts_at, ends_at
        ) AS n;
    END IF;

    IF search_mode <> 'semantic' THEN
        SELECT array_agg(l.lexeme ORDER BY l.n), array_agg(l.share ORDER BY l.n), array_agg(l.n = 1 OR l.rows <= fetch_limit ORDER BY l.n)
        INTO asked, shares, complete
        FROM (
            SELECT q.lexeme, q.share, row_number() OVER w AS n, sum(q.share * scope_size) OVER w AS rows
            FROM recall.question_lexemes(config, question, scope_size > fetch_limit) AS q
            WINDOW w AS (ORDER BY q.share, q.lexeme)
        ) AS l;
        SELECT string_agg(recall.lexeme_query(l.lexeme)::text, ' | ')::tsquery INTO fetched
        FROM unnest(asked, complete) AS l (lexeme, complete)
        WHERE l.complete;
    END IF;

    IF search_mode = 'semantic' THEN
        RETURN QUERY
        SELECT
            m.thread_id, m.created_at, m.seq, m.id,
            round(n.similarity::numeric, 9)::float8, n.similarity, 0::float8, near_plan, near_visited
        FROM unnest(near_ids, near_similarities) AS n (id, similarity)
        CROSS JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = n.id OFFSET 0) AS m
        WHERE threshold IS NULL OR n.similarity >= threshold
        ORDER BY round(n.similarity::numeric, 9) DESC, m.created_at, m.thread_id, m.seq
        LIMIT top_k;
        RETURN;
    END IF;

    RETURN QUERY EXECUTE format(
        $sql$
        WITH
        asked AS MATERIALIZED (
            SELECT a.lexeme, recall.lexeme_query(a.lexeme) AS query, a.share, a.complete
            FROM unnest($3, $4, $5) AS a (lexeme, share, complete)
        ),
        -- || '' : the tsvector is detoasted once, not for every lexeme.
        row AS MATERIALIZED (
            SELECT m.thread_id, m.seq, m.asks, m.lexemes || '' AS lexemes, length(m.lexemes) AS n
            FROM recall.messages AS m
            WHERE recall.scope_keys(m.thread_id, m.resource_id) @> ARRAY[$1] AND m.lexemes @@ $6
            UNION ALL
            SELECT m.thread_id, m.seq, m.asks, m.lexemes || '', length(m.lexemes)
            FROM recall.messages AS m
            WHERE NOT true = ALL ($5) AND m.id = ANY ($7) AND NOT m.lexemes @@ $6
        ),
        -- ts_rank of one lexeme is a saturating term frequency: 1, 2, 3 times give
        -- .61, .76, .83.
        occurrence AS MATERIALIZED (
            SELECT r.thread_id, r.seq, r.asks, a.lexeme, t.frequency / power(1 + r.n / 40.0::float8, .25) AS frequency
            FROM row AS r
            CROSS JOIN asked AS a
            CROSS JOIN LATERAL (SELECT ts_rank('{1,1,1,1}', r.lexemes, a.query) AS frequency OFFSET 0) AS t
            WHERE t.frequency > 1e-6
        ),
        -- Messages with the lexeme are counted where all were fetched, else taken from
        -- the statistics.
        weight AS MATERIALIZED (
            SELECT d.lexeme, ln(1 + greatest($2 - d.messages + .5, .5) / (d.messages + .5)) AS idf
            FROM (
                SELECT o.lexeme, CASE WHEN a.complete THEN count(*)::float8 ELSE a.share * $2 END AS messages
                FROM occurrence AS o
                JOIN asked AS a USING (lexeme)
                GROUP BY o.lexeme, a.complete, a.share
            ) AS d
        ),
        own AS MATERIALIZED (
            SELECT o.thread_id, o.seq, o.asks, sum(w.idf * o.frequency) / (SELECT sum(idf) FROM weight) AS words
            FROM occurrence AS o
            JOIN weight AS w USING (lexeme)
            GROUP BY o.thread_id, o.seq, o.asks
        ),
        spread AS MATERIALIZED (
            SELECT s.thread_id, s.seq, sum(s.words) AS words
            FROM (
                SELECT o.thread_id, o.seq, o.words FROM own AS o
                UNION ALL
                SELECT o.thread_id, o.seq + 1, CASE WHEN o.asks THEN .7 ELSE .1 END * o.words FROM own AS o
                UNION ALL
                SELECT o.thread_id, o.seq - 1, .2 * o.words FROM own AS o
            ) AS s
            GROUP BY s.thread_id, s.seq
        ),
        sample AS MATERIALIZED (%5$s),
        -- The nearest, whose similarities are known.
        near AS MATERIALIZED (
            SELECT m.thread_id, m.created_at, m.seq, m.id, v.similarity, s.words, coalesce(s.words, 0) + %2$s%4$s - CASE WHEN m.asks THEN .05 ELSE 0 END AS score
            FROM unnest($7, $20) AS v (id, similarity)
            CROSS JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = v.id OFFSET 0) AS m
            LEFT JOIN spread AS s USING (thread_id, seq)
            CROSS JOIN sample AS z
        ),
        -- What else there is gains no more by its similarity than the least of them
        -- ($21; the graph's may leave out nearer ones). With fewer words than make up for
        -- that it is not among the best, and is not looked up. Scores are rounded: 1e-8.
        bar AS (
            SELECT n.score - v.gain - 1e-8 AS words
            FROM near AS n
            CROSS JOIN (SELECT greatest(%2$s, 0) AS gain FROM sample AS z CROSS JOIN (SELECT $21 AS similarity) AS v) AS v
            WHERE $17 = 'exact' AND ($19 IS NULL OR n.similarity >= $19)
            ORDER BY n.score DESC
            OFFSET $9 - 1
            LIMIT 1
        ),
        by_words AS (
            SELECT m.thread_id, m.created_at, m.seq, m.id, m.asks, m.lexemes, s.words
            FROM (
                -- Some positions have no message: a third more.
                SELECT s.thread_id, s.seq, s.words
                FROM spread AS s
                WHERE s.words >= coalesce((SELECT b.words FROM bar AS b), 0)
                ORDER BY s.words DESC, s.thread_id, s.seq
                LIMIT CASE WHEN NOT $16 THEN $8 * 4 / 3 END
            ) AS s
            CROSS JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.thread_id = s.thread_id AND f.seq = s.seq OFFSET 0) AS m
            WHERE m.lexemes <> ''
                AND ($12 IS NULL OR recall.message_metadata(m.content) @@ $12)
                AND ($15 IS NULL OR m.lexemes @@ $15)
                AND (cardinality($11) = 0 OR m.role = ANY ($11))
                AND m.created_at >= $13
                AND m.created_at < $14
            ORDER BY s.words DESC, m.thread_id, m.seq
            LIMIT $8
        ),
        scored AS (
            SELECT n.* FROM near AS n
            UNION ALL
            SELECT m.thread_id, m.created_at, m.seq, m.id, v.similarity, s.words, coalesce(s.words, 0) + %2$s%4$s - CASE WHEN m.asks THEN .05 ELSE 0 END AS score
            FROM by_words AS m
            CROSS JOIN LATERAL (SELECT m.words) AS s
            LEFT JOIN LATERAL (
                SELECT max(-(e.embedding <#> $10::%3$s)) AS similarity
                FROM recall.%1$I AS e
                WHERE e.message_id = m.id AND $10 IS NOT NULL
            ) AS v ON true
            CROSS JOIN sample AS z
            WHERE m.id <> ALL ($7)
        )
        SELECT
            s.thread_id, s.created_at, s.seq, s.id,
            round(s.score::numeric, 9)::float8 AS score, s.similarity, coalesce(s.words, 0), $17, $18
        FROM scored AS s
        WHERE $19 IS NULL OR s.similarity >= $19
        ORDER BY round(s.score::numeric, 9) DESC, s.created_at, s.thread_id, s.seq
        LIMIT $9
        $sql$,
        'embeddings_' || used.id,
        -- What a similarity adds to a score, ...
        CASE
            WHEN search_mode = 'lexical' THEN '0'
            WHEN used.length_prior THEN 'coalesce(v.similarity, 0)'
            ELSE '.1 * coalesce(greatest(0, .5 + (v.similarity - z.mean) / z.deviation), 0)'
        END,
        CASE WHEN used.dimensions <= 2000 THEN 'vector' ELSE 'halfvec' END || '(' || used.dimensions || ')',
        -- ... by the length of the message.
        CASE WHEN search_mode = 'hybrid' AND NOT used.length_prior THEN ' * length(m.lexemes) / (length(m.lexemes) + 8.0)' ELSE '' END,
        CASE WHEN search_mode = 'hybrid' AND NOT used.length_prior THEN format(
            $sql$
            SELECT avg(y.similarity) AS mean, nullif(stddev_pop(y.similarity), 0) AS deviation
            FROM (
                SELECT -(e.embedding <#> $10::%s) AS similarity
                FROM (%s) AS e
                ORDER BY e.chunk, e.message_id
                LIMIT 200
            ) AS y
            $sql$,
            CASE WHEN used.dimensions <= 2000 THEN 'vector' ELSE 'halfvec' END || '(' || used.dimensions || ')',
            -- In the order of the scope's index; that of a resource has two parts.
            (
                SELECT string_agg(
                    format(
                        $part$
                        (
                            SELECT s.message_id, s.chunk, s.embedding
                            FROM recall.%I AS s
                            WHERE %s AND s.embedding IS NOT NULL
                            ORDER BY s.chunk, s.message_id
                            LIMIT 200
                        )
                        $part$,
                        'embeddings_' || used.id, p.condition
                    ),
                    ' UNION ALL '
                )
                FROM unnest(CASE
                    WHEN of_thread_id <> '' THEN ARRAY['s.thread_id = substr($1, 2)']
                    ELSE ARRAY['s.resource_id = substr($1, 2) AND s.in_graph', 's.resource_id = substr($1, 2) AND NOT s.in_graph']
                END) AS p (condition)
            )
        ) ELSE 'SELECT NULL::float8 AS mean, NULL::float8 AS deviation' END
    )
    USING
        scope_key, scope_size, asked, shares, complete, fetched, near_ids, greatest(300, 3 * top_k), top_k, query_vector,
        roles, matching, starts_at, ends_at, phrase, filtered, near_plan, near_visited, threshold, near_similarities,
        (SELECT min(n.similarity) FROM unnest(near_similarities) AS n (similarity));
END
$$;
