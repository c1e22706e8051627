-- +goose Up

-- +goose StatementBegin
-- The positions of the messages around a position of a thread: before_count
-- before it and after_count after it, in the thread's order, each with its
-- distance (-1 is the one just before). The position itself is not among them.
-- Reads before_count + after_count entries of messages_thread_order_idx. One
-- SELECT without SET, so that PostgreSQL plans it as part of its caller.
CREATE FUNCTION recall.context_positions(
    of_thread_id text, of_created_at timestamptz, of_seq bigint, before_count bigint, after_count bigint
) RETURNS TABLE (created_at timestamptz, seq bigint, distance bigint)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    (
        SELECT m.created_at, m.seq, -row_number() OVER (ORDER BY m.created_at DESC, m.seq DESC) AS distance
        FROM recall.messages AS m
        WHERE m.thread_id = of_thread_id
            AND (m.created_at, m.seq) < (of_created_at, of_seq)
        ORDER BY m.created_at DESC, m.seq DESC
        LIMIT before_count
    )
    UNION ALL
    (
        SELECT m.created_at, m.seq, row_number() OVER (ORDER BY m.created_at, m.seq) AS distance
        FROM recall.messages AS m
        WHERE m.thread_id = of_thread_id
            AND (m.created_at, m.seq) > (of_created_at, of_seq)
        ORDER BY m.created_at, m.seq
        LIMIT after_count
    );
END;
-- +goose StatementEnd

-- +goose StatementBegin
-- What a recall returns, as positions (created_at, thread_id, seq) without
-- content, and why each is there. total and has_more are of the whole page and
-- the same in each row; where nothing is found there is one row without a
-- position.
--
-- Scope: the thread of_thread_id or, where that is empty, all threads of
-- of_resource_id.
--
-- Page: the newest (or else the oldest) max_rows messages past the first
-- skip_rows; max_rows NULL means all. They lie strictly between the positions
-- after_* and before_*, and in starts_at <= created_at < ends_at, over which
-- total counts too. A scan of a btree starts at one bound only, so the caller
-- makes one of range and cursor: after_* is no earlier than (starts_at, '', 0),
-- which is before all of starts_at since seq is from 1, and before_* no later
-- than (ends_at, '', 0). Where has_conditions, the messages' metadata satisfies
-- the jsonpath predicate `matching` and their role is one of `roles` (empty: any).
--
-- include_*: arrays of one length; the message include_ids[i] of the thread
-- include_thread_ids[i] (empty: any) of of_resource_id (empty: any), with
-- include_before[i] messages before and include_after[i] after it.
--
-- keep_tool_pairs adds, for each result of a tool call in a message, the nearest
-- earlier message of its thread that makes the call.
--
-- Plans: one SELECT without SET, so it is planned as part of its caller. Each
-- branch of `page` is one way to find the page and does not run where its first
-- conditions, on parameters alone, are false: the right index is read under a
-- generic plan too.
--   thread, no conditions      messages_thread_order_idx
--   resource, no conditions    messages_resource_order_idx
--   conditions, tool calls     messages_content_idx
--   include, context           messages_pkey, messages_thread_order_idx
-- OFFSET 0 keeps a look-up a nested loop over its index, whatever number of
-- rows the planner expects.
CREATE FUNCTION recall.recall_positions(
    of_thread_id text,
    of_resource_id text,
    newest boolean,
    max_rows bigint,
    skip_rows bigint,
    starts_at timestamptz,
    ends_at timestamptz,
    after_created_at timestamptz,
    after_thread_id text,
    after_seq bigint,
    before_created_at timestamptz,
    before_thread_id text,
    before_seq bigint,
    has_conditions boolean,
    matching jsonpath,
    roles text[],
    with_total boolean,
    include_ids text[],
    include_thread_ids text[],
    include_before bigint[],
    include_after bigint[],
    keep_tool_pairs boolean
) RETURNS TABLE (
    total bigint,
    has_more boolean,
    created_at timestamptz,
    thread_id text,
    seq bigint,
    on_page boolean,
    included boolean,
    tool_call boolean,
    context_of text,
    context_offset bigint
)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    WITH RECURSIVE
    -- The planner does not see the values that come out of a CTE, and so always
    -- intersects scope and condition in the index.
    condition AS MATERIALIZED (
        SELECT
            ARRAY[CASE WHEN of_thread_id <> '' THEN 't' || of_thread_id ELSE 'r' || of_resource_id END] AS scope,
            matching AS predicate
        WHERE has_conditions
    ),
    matched AS MATERIALIZED (
        SELECT f.created_at, f.thread_id, f.seq
        FROM condition AS c
        CROSS JOIN LATERAL (
            SELECT m.created_at, m.thread_id, m.seq
            FROM recall.messages AS m
            WHERE recall.scope_keys(m.thread_id, m.resource_id) @> c.scope
                AND recall.message_metadata(m.content) @@ c.predicate
                AND (cardinality(roles) = 0 OR m.role = ANY (roles))
            OFFSET 0
        ) AS f
        WHERE f.created_at >= starts_at AND f.created_at < ends_at
    ),
    page AS MATERIALIZED (
        (
            SELECT m.created_at, m.thread_id, m.seq
            FROM recall.messages AS m
            WHERE NOT has_conditions AND of_thread_id <> '' AND newest
                AND m.thread_id = of_thread_id
                AND (m.created_at, m.seq) > (after_created_at, after_seq)
                AND (m.created_at, m.seq) < (before_created_at, before_seq)
            ORDER BY m.created_at DESC, m.seq DESC
            LIMIT max_rows + 1 OFFSET skip_rows
        )
        UNION ALL
        (
            SELECT m.created_at, m.thread_id, m.seq
            FROM recall.messages AS m
            WHERE NOT has_conditions AND of_thread_id <> '' AND NOT newest
                AND m.thread_id = of_thread_id
                AND (m.created_at, m.seq) > (after_created_at, after_seq)
                AND (m.created_at, m.seq) < (before_created_at, before_seq)
            ORDER BY m.created_at, m.seq
            LIMIT max_rows + 1 OFFSET skip_rows
        )
        UNION ALL
        (
            SELECT m.created_at, m.thread_id, m.seq
            FROM recall.messages AS m
            WHERE NOT has_conditions AND of_thread_id = '' AND newest
                AND m.resource_id = of_resource_id
                AND (m.created_at, m.thread_id, m.seq) > (after_created_at, after_thread_id, after_seq)
                AND (m.created_at, m.thread_id, m.seq) < (before_created_at, before_thread_id, before_seq)
            ORDER BY m.created_at DESC, m.thread_id DESC, m.seq DESC
            LIMIT max_rows + 1 OFFSET skip_rows
        )
        UNION ALL
        (
            SELECT m.created_at, m.thread_id, m.seq
            FROM recall.messages AS m
            WHERE NOT has_conditions AND of_thread_id = '' AND NOT newest
                AND m.resource_id = of_resource_id
                AND (m.created_at, m.thread_id, m.seq) > (after_created_at, after_thread_id, after_seq)
                AND (m.created_at, m.thread_id, m.seq) < (before_created_at, before_thread_id, before_seq)
            ORDER BY m.created_at, m.thread_id, m.seq
            LIMIT max_rows + 1 OFFSET skip_rows
        )
        UNION ALL
        (
            SELECT m.created_at, m.thread_id, m.seq
            FROM matched AS m
            WHERE newest
                AND (m.created_at, m.thread_id, m.seq) < (before_created_at, before_thread_id, before_seq)
            ORDER BY m.created_at DESC, m.thread_id DESC, m.seq DESC
            LIMIT max_rows + 1 OFFSET skip_rows
        )
        UNION ALL
        (
            SELECT m.created_at, m.thread_id, m.seq
            FROM matched AS m
            WHERE NOT newest
                AND (m.created_at, m.thread_id, m.seq) > (after_created_at, after_thread_id, after_seq)
            ORDER BY m.created_at, m.thread_id, m.seq
            LIMIT max_rows + 1 OFFSET skip_rows
        )
    ),
    summary AS (
        SELECT
            CASE
                WHEN NOT with_total THEN NULL
                WHEN has_conditions THEN (SELECT count(*) FROM matched)
                WHEN of_thread_id <> '' AND starts_at = '-infinity' AND ends_at = 'infinity' THEN (
                    SELECT t.message_count FROM recall.threads AS t WHERE t.id = of_thread_id
                )
                WHEN of_thread_id <> '' THEN (
                    SELECT count(*)
                    FROM recall.messages AS m
                    WHERE m.thread_id = of_thread_id AND m.created_at >= starts_at AND m.created_at < ends_at
                )
                WHEN starts_at = '-infinity' AND ends_at = 'infinity' THEN (
                    SELECT coalesce(sum(t.message_count), 0)::bigint
                    FROM recall.threads AS t
                    WHERE t.resource_id = of_resource_id
                )
                ELSE (
                    SELECT count(*)
                    FROM recall.messages AS m
                    WHERE m.resource_id = of_resource_id AND m.created_at >= starts_at AND m.created_at < ends_at
                )
            END AS total,
            (SELECT count(*) FROM page) > max_rows AS has_more
    ),
    anchor AS MATERIALIZED (
        SELECT m.id, m.created_at, m.thread_id, m.seq, i.before_count, i.after_count
        FROM unnest(include_ids, include_thread_ids, include_before, include_after)
            AS i (id, thread_id, before_count, after_count)
        CROSS JOIN LATERAL (
            SELECT f.id, f.created_at, f.thread_id, f.seq
            FROM recall.messages AS f
            WHERE f.id = i.id
                AND (i.thread_id = '' OR f.thread_id = i.thread_id)
                AND (of_resource_id = '' OR f.resource_id = of_resource_id)
            OFFSET 0
        ) AS m
    ),
    shown AS MATERIALIZED (
        (
            SELECT p.created_at, p.thread_id, p.seq,
                true AS on_page, false AS included, NULL::text AS context_of, NULL::bigint AS context_offset
            FROM page AS p
            ORDER BY
                CASE WHEN newest THEN p.created_at END DESC,
                CASE WHEN newest THEN p.thread_id END DESC,
                CASE WHEN newest THEN p.seq END DESC,
                p.created_at, p.thread_id, p.seq
            LIMIT max_rows
        )
        UNION ALL
        SELECT a.created_at, a.thread_id, a.seq, false, true, NULL, NULL
        FROM anchor AS a
        UNION ALL
        SELECT c.created_at, a.thread_id, c.seq, false, false, a.id, c.distance
        FROM anchor AS a
        CROSS JOIN LATERAL recall.context_positions(a.thread_id, a.created_at, a.seq, a.before_count, a.after_count) AS c
    ),
    -- The calls that belong to the tool results of what is shown, one row a
    -- generation: a message can have a result and make the next call, so this goes
    -- on. Arrays, since a row for each would need UNION against what was there
    -- before, whose hash table is as large as the planner's guess: 7 ms to make.
    call AS (
        SELECT
            0 AS generation,
            array_agg(s.thread_id) AS thread_ids,
            array_agg(s.created_at) AS created_ats,
            array_agg(s.seq) AS seqs
        FROM shown AS s
        WHERE keep_tool_pairs
        UNION ALL
        SELECT r.generation + 1, g.thread_ids, g.created_ats, g.seqs
        FROM call AS r
        CROSS JOIN LATERAL (
            SELECT
                array_agg(d.thread_id) AS thread_ids,
                array_agg(d.created_at) AS created_ats,
                array_agg(d.seq) AS seqs
            FROM (
                SELECT DISTINCT p.thread_id, f.created_at, f.seq
                FROM unnest(r.thread_ids, r.created_ats, r.seqs) AS p (thread_id, created_at, seq)
                CROSS JOIN LATERAL (
                    SELECT recall.tool_result_ids(m.content) AS ids
                    FROM recall.messages AS m
                    WHERE m.thread_id = p.thread_id AND m.seq = p.seq
                    OFFSET 0
                ) AS result
                -- The call is just before its result, as a rule. Looking there first, once for all
                -- results of a message, keeps this cheap also where every turn of a thread names
                -- its calls alike.
                CROSS JOIN LATERAL (
                    SELECT k.id, near.created_at, near.seq
                    FROM (SELECT DISTINCT e.id FROM jsonb_array_elements(result.ids) AS e (id)) AS k
                    LEFT JOIN (
                        SELECT DISTINCT ON (e.id) e.id, n.created_at, n.seq
                        FROM (
                            SELECT m.created_at, m.seq, m.content
                            FROM recall.messages AS m
                            WHERE m.thread_id = p.thread_id
                                AND (m.created_at, m.seq) < (p.created_at, p.seq)
                                AND result.ids <> '[]'
                            ORDER BY m.created_at DESC, m.seq DESC
                            LIMIT 50
                        ) AS n
                        CROSS JOIN LATERAL jsonb_array_elements(recall.tool_call_ids(n.content)) AS e (id)
                        ORDER BY e.id, n.created_at DESC, n.seq DESC
                    ) AS near ON near.id = k.id
                    OFFSET 0
                ) AS k
                CROSS JOIN LATERAL (
                    SELECT k.created_at, k.seq
                    WHERE k.seq IS NOT NULL
                    UNION ALL
                    (
                        SELECT g.created_at, g.seq
                        FROM (
                            SELECT m.created_at, m.seq
                            FROM recall.messages AS m
                            WHERE k.seq IS NULL
                                AND recall.scope_keys(m.thread_id, m.resource_id) @> ARRAY['t' || p.thread_id]
                                AND recall.tool_call_ids(m.content) @> jsonb_build_array(k.id)
                            OFFSET 0
                        ) AS g
                        WHERE (g.created_at, g.seq) < (p.created_at, p.seq)
                        ORDER BY g.created_at DESC, g.seq DESC
                        LIMIT 1
                    )
                ) AS f
            ) AS d
        ) AS g
        WHERE g.seqs IS NOT NULL
    ),
    picked AS (
        SELECT
            p.created_at,
            p.thread_id,
            p.seq,
            bool_or(p.on_page) AS on_page,
            bool_or(p.included) AS included,
            bool_or(p.tool_call) AS tool_call,
            (array_agg(p.context_of ORDER BY abs(p.context_offset), p.context_offset) FILTER (WHERE p.context_of IS NOT NULL))[1]
                AS context_of,
            (array_agg(p.context_offset ORDER BY abs(p.context_offset), p.context_offset) FILTER (WHERE p.context_of IS NOT NULL))[1]
                AS context_offset
        FROM (
            SELECT s.created_at, s.thread_id, s.seq, s.on_page, s.included, false AS tool_call, s.context_of, s.context_offset
            FROM shown AS s
            UNION ALL
            SELECT u.created_at, u.thread_id, u.seq, false, false, true, NULL, NULL
            FROM call AS c
            CROSS JOIN LATERAL unnest(c.thread_ids, c.created_ats, c.seqs) AS u (thread_id, created_at, seq)
            WHERE c.generation > 0
        ) AS p
        GROUP BY p.created_at, p.thread_id, p.seq
    )
    SELECT
        y.total, coalesce(y.has_more, false), p.created_at, p.thread_id, p.seq,
        p.on_page, p.included, p.tool_call, p.context_of, p.context_offset
    FROM summary AS y
    LEFT JOIN picked AS p ON true;
END;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION recall.recall_positions(
    text, text, boolean, bigint, bigint, timestamptz, timestamptz, timestamptz, text, bigint, timestamptz, text, bigint,
    boolean, jsonpath, text[], boolean, text[], text[], bigint[], bigint[], boolean
);
DROP FUNCTION recall.context_positions(text, timestamptz, bigint, bigint, bigint);
