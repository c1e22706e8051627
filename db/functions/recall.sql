-- The messages of a thread or, without one, of all threads of a resource: what the
-- same request gives over HTTP. Order: oldest first (created_at, thread_id,
-- position).
--
-- The page is the newest (or else the oldest) per_page messages past the first
-- page * per_page that satisfy metadata (metadata_predicate), have one of the roles
-- and starts_at <= created_at < ends_at. per_page -1 means all; NULL means 10, and 0
-- where messages are included and neither page nor filter is given. Included are
-- the messages of those ids, of the thread where there is one, each with `before`
-- messages before and `after` messages after it. keep_tool_pairs adds the calls of
-- the tool results among them. Where both are given, the thread is of the resource,
-- or nothing is found. NULL always means: not given.
--
-- One SELECT without SET, so that PostgreSQL plans it, and recall_positions, as
-- part of its caller. The plans are those of recall_positions.
CREATE OR REPLACE FUNCTION recall.recall(
    thread_id text DEFAULT NULL,
    resource_id text DEFAULT NULL,
    per_page bigint DEFAULT NULL,
    page bigint DEFAULT NULL,
    metadata jsonb DEFAULT NULL,
    roles text[] DEFAULT NULL,
    starts_at timestamptz DEFAULT NULL,
    ends_at timestamptz DEFAULT NULL,
    include text[] DEFAULT NULL,
    before bigint DEFAULT 0,
    after bigint DEFAULT 0,
    newest boolean DEFAULT true,
    keep_tool_pairs boolean DEFAULT false
) RETURNS SETOF recall.recalled
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT
        m.seq, m.id::text, m.thread_id::text, m.resource_id::text, m.role,
        recall.plain_text(m.content), m.created_at::timestamptz, recall.message_metadata(m.content),
        array_remove(ARRAY[
            CASE WHEN r.on_page THEN 'page' END,
            CASE WHEN r.included THEN 'include' END,
            CASE WHEN r.context_of IS NOT NULL THEN 'context' END,
            CASE WHEN r.tool_call THEN 'toolCall' END
        ], NULL),
        r.context_of, r.context_offset
    FROM recall.recall_positions(
        coalesce(recall.thread_id, ''),
        CASE
            WHEN recall.thread_id IS NULL AND recall.resource_id IS NULL THEN recall.refuse(
                'thread_id or resource_id is required', coalesce(recall.thread_id, recall.resource_id)
            )
            ELSE coalesce(recall.resource_id, '')
        END,
        recall.newest,
        recall.page_rows(
            recall.per_page,
            recall.include <> '{}' AND recall.page IS NULL
                AND num_nonnulls(nullif(recall.metadata, '{}'), nullif(recall.roles, '{}'), recall.starts_at, recall.ends_at) = 0
        ),
        CASE WHEN recall.per_page = -1 THEN 0 ELSE coalesce(recall.page, 0) * coalesce(recall.per_page, 10) END,
        coalesce(recall.starts_at, '-infinity'),
        coalesce(recall.ends_at, 'infinity'),
        coalesce(recall.starts_at, '-infinity'),
        '',
        0,
        coalesce(recall.ends_at, 'infinity'),
        '',
        0,
        coalesce(recall.metadata, '{}') <> '{}' OR coalesce(recall.roles, '{}') <> '{}',
        coalesce(recall.metadata_predicate(recall.metadata), '1 == 1'),
        coalesce(recall.roles, '{}'),
        false,
        coalesce(recall.include, '{}'),
        array_fill(coalesce(recall.thread_id, ''), ARRAY[coalesce(cardinality(recall.include), 0)]),
        array_fill(recall.before, ARRAY[coalesce(cardinality(recall.include), 0)]),
        array_fill(recall.after, ARRAY[coalesce(cardinality(recall.include), 0)]),
        recall.keep_tool_pairs
    ) AS r
    CROSS JOIN LATERAL (
        SELECT f.*
        FROM recall.messages AS f
        WHERE f.thread_id = r.thread_id AND f.seq = r.seq
        OFFSET 0
    ) AS m
    WHERE coalesce(recall.resource_id, '') = '' OR m.resource_id = recall.resource_id
    ORDER BY r.created_at, r.thread_id, r.seq;
END;

COMMENT ON FUNCTION recall.recall(text, text, bigint, bigint, jsonb, text[], timestamptz, timestamptz, text[], bigint, bigint, boolean, boolean) IS
'The messages of a thread, or of all threads of a resource, oldest first: a page of the newest (per_page, page; -1: all; newest => false: from the oldest), under filters (metadata, roles, starts_at <= created_at < ends_at), and those included by id with the messages before and after them.';
