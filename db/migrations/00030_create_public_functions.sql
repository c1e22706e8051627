-- +goose Up

-- +goose StatementBegin
-- Refuses a call with a message, for the branch of an expression that must not be
-- reached. The value that is refused is an argument since the planner, for its
-- estimates, calls what has only constants, reached or not.
CREATE FUNCTION recall.refuse(message text, value text) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RAISE EXCEPTION '%', message USING ERRCODE = 'invalid_parameter_value';
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- The predicate that holds for metadata with all the pairs of `wanted`, each with
-- exactly that value and type: 2 is 2.0 and not "2", null is an explicit null.
-- NULL where nothing is wanted. Values are strings, numbers, booleans and null.
--
-- A path is lax by default: it unwraps arrays, and comparing different types gives
-- unknown. So each comparison asks for the type first; then it is true or false,
-- and NOT of it is right too. PostgreSQL takes the equalities as keys of
-- messages_content_idx.
CREATE FUNCTION recall.metadata_predicate(wanted jsonb) RETURNS jsonpath
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT ('(' || string_agg(
        CASE
            WHEN jsonb_typeof(p.value) IN ('object', 'array') THEN recall.refuse(
                format('metadata.%s must be a string, a number, a boolean or null', p.key), p.value::text
            )
            ELSE format('($.%1$s.type() == "%2$s" && $.%1$s == %3$s)', to_jsonb(p.key), jsonb_typeof(p.value), p.value)
        END,
        ' && ' ORDER BY p.key COLLATE "C"
    ) || ')')::jsonpath
    FROM jsonb_each(wanted) AS p (key, value);
END;
-- +goose StatementEnd

-- +goose StatementBegin
-- What a message says: its texts, one a line; empty where it has none.
CREATE FUNCTION recall.plain_text(content jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(string_agg(t.words, E'\n' ORDER BY t.n), '')
    FROM jsonb_array_elements_text(recall.message_texts(content)) WITH ORDINALITY AS t (words, n);
END;
-- +goose StatementEnd

-- How many messages a page has: NULL for all (per_page -1). Where per_page is not
-- given it is 10, and 0 where only_included.
CREATE FUNCTION recall.page_rows(per_page bigint, only_included boolean) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN per_page = -1 THEN NULL
    WHEN per_page IS NULL AND only_included THEN 0
    ELSE coalesce(per_page, 10)
END;

-- +goose StatementBegin
-- The vector that an index has of a message, of its first part where it was
-- embedded in several; NULL where it has none.
CREATE FUNCTION recall.message_vector(of_index recall.embedding_indexes, of_message_id text) RETURNS vector
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    found vector;
BEGIN
    EXECUTE format(
        $sql$
        SELECT e.embedding::vector
        FROM recall.%I AS e
        WHERE e.message_id = $1 AND e.embedding IS NOT NULL
        ORDER BY e.chunk
        LIMIT 1
        $sql$,
        'embeddings_' || of_index.id
    )
    INTO found
    USING of_message_id;
    RETURN found;
END
$$;
-- +goose StatementEnd

-- A row of what recall and context give.
CREATE TYPE recall.recalled AS (
    "position"     bigint,
    id             text,
    thread_id      text,
    resource_id    text,
    role           text,
    text           text,
    created_at     timestamptz,
    metadata       jsonb,
    reasons        text[],
    context_of     text,
    context_offset bigint
);

COMMENT ON TYPE recall.recalled IS 'A message with why it was recalled: a row of recall() and context().';

-- A row of what search, nearest and similar_to give.
CREATE TYPE recall.found AS (
    rank        bigint,
    score       double precision,
    similarity  double precision,
    words       double precision,
    "position"  bigint,
    id          text,
    thread_id   text,
    resource_id text,
    role        text,
    text        text,
    created_at  timestamptz,
    metadata    jsonb
);

COMMENT ON TYPE recall.found IS 'A message with how it was found: a row of search(), nearest() and similar_to().';

-- +goose StatementBegin
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
CREATE FUNCTION recall.recall(
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
-- +goose StatementEnd

COMMENT ON FUNCTION recall.recall(text, text, bigint, bigint, jsonb, text[], timestamptz, timestamptz, text[], bigint, bigint, boolean, boolean) IS
'The messages of a thread, or of all threads of a resource, oldest first: a page of the newest (per_page, page; -1: all; newest => false: from the oldest), under filters (metadata, roles, starts_at <= created_at < ends_at), and those included by id with the messages before and after them.';

-- +goose StatementBegin
-- Messages by their ids, each with `before` messages before and `after` messages
-- after it in its own thread, as include does over HTTP; where resource_id is
-- given, of that resource. Order: oldest first (created_at, thread_id, position);
-- each message once. Ids that there are not add nothing.
--
-- Planned as part of its caller, as recall is.
CREATE FUNCTION recall.context(
    message_ids text[],
    before bigint DEFAULT 1,
    after bigint DEFAULT 1,
    resource_id text DEFAULT NULL
) RETURNS SETOF recall.recalled
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT r.*
    FROM recall.recall(
        resource_id => coalesce(context.resource_id, ''),
        per_page => 0,
        include => coalesce(message_ids, '{}'),
        before => context.before,
        after => context.after
    ) AS r;
END;
-- +goose StatementEnd

COMMENT ON FUNCTION recall.context(text[], bigint, bigint, text) IS
'Messages by their ids, each with the messages before and after it in its thread, oldest first.';

-- +goose StatementBegin
-- The messages that search_positions finds, whose parameters these are but that
-- matching is made of metadata, and query_model is that of the index: the one named
-- or, where index_name is NULL, the live one. Of both a thread and a resource, the
-- thread is of the resource or nothing is found. Order: by rank.
CREATE FUNCTION recall.hits(
    search_mode text,
    question text,
    query_vector vector,
    index_name text,
    of_thread_id text,
    of_resource_id text,
    top_k integer,
    threshold double precision,
    metadata jsonb,
    roles text[],
    starts_at timestamptz,
    ends_at timestamptz
) RETURNS SETOF recall.found
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT
        h.rank, h.score, h.similarity, h.words,
        m.seq, m.id::text, m.thread_id::text, m.resource_id::text, m.role,
        recall.plain_text(m.content), m.created_at::timestamptz, recall.message_metadata(m.content)
    FROM (
        SELECT s.*, row_number() OVER () AS rank
        FROM recall.search_positions(
            coalesce(of_thread_id, ''),
            CASE
                WHEN of_thread_id IS NULL AND of_resource_id IS NULL THEN recall.refuse(
                    'thread_id or resource_id is required', coalesce(of_thread_id, of_resource_id)
                )
                ELSE coalesce(of_resource_id, '')
            END,
            search_mode,
            question,
            query_vector,
            (
                SELECT i.model
                FROM recall.embedding_indexes AS i
                WHERE CASE WHEN index_name IS NULL THEN i.state = 'live' ELSE i.name = index_name END
            ),
            coalesce(index_name, ''),
            top_k,
            threshold,
            coalesce(roles, '{}'),
            recall.metadata_predicate(metadata),
            coalesce(starts_at, '-infinity'),
            coalesce(ends_at, 'infinity')
        ) AS s
    ) AS h
    CROSS JOIN LATERAL (SELECT f.* FROM recall.messages AS f WHERE f.id = h.message_id OFFSET 0) AS m
    WHERE of_resource_id IS NULL OR m.resource_id = of_resource_id
    ORDER BY h.rank;
END;
-- +goose StatementEnd

-- +goose StatementBegin
-- The top_k messages of a thread, or of all threads of a resource, that have the
-- words of a query, best first: what the mode lexical finds over HTTP. It needs no
-- embedder. A part of the query in double quotes must occur as a phrase. metadata,
-- roles, starts_at and ends_at restrict what is found as they do in recall.
CREATE FUNCTION recall.search(
    query text,
    thread_id text DEFAULT NULL,
    resource_id text DEFAULT NULL,
    top_k integer DEFAULT 4,
    metadata jsonb DEFAULT NULL,
    roles text[] DEFAULT NULL,
    starts_at timestamptz DEFAULT NULL,
    ends_at timestamptz DEFAULT NULL
) RETURNS SETOF recall.found
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT h.rank, h.score, h.similarity, h.words, h."position", h.id, h.thread_id, h.resource_id, h.role, h.text, h.created_at, h.metadata
    FROM recall.hits(
        'lexical', query, NULL, NULL,
        search.thread_id, search.resource_id, search.top_k, NULL,
        search.metadata, search.roles, search.starts_at, search.ends_at
    ) AS h;
END;
-- +goose StatementEnd

COMMENT ON FUNCTION recall.search(text, text, text, integer, jsonb, text[], timestamptz, timestamptz) IS
'The messages of a thread, or of all threads of a resource, that have the words of a query, best first; words in double quotes must stand side by side. Needs no embedder.';

-- +goose StatementBegin
-- The top_k messages of a thread, or of all threads of a resource, whose vectors are
-- nearest to one, best first: what the mode semantic finds over HTTP for a question
-- that has it. It is a vector of the index's model, of length 1; index_name NULL
-- means the live index. What is less similar than threshold is left out. metadata,
-- roles, starts_at and ends_at restrict what is found as they do in recall. Error
-- PR404: there is no such index, or its vectors have other dimensions.
CREATE FUNCTION recall.nearest(
    embedding vector,
    thread_id text DEFAULT NULL,
    resource_id text DEFAULT NULL,
    top_k integer DEFAULT 4,
    threshold double precision DEFAULT NULL,
    metadata jsonb DEFAULT NULL,
    roles text[] DEFAULT NULL,
    starts_at timestamptz DEFAULT NULL,
    ends_at timestamptz DEFAULT NULL,
    index_name text DEFAULT NULL
) RETURNS SETOF recall.found
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT h.rank, h.score, h.similarity, h.words, h."position", h.id, h.thread_id, h.resource_id, h.role, h.text, h.created_at, h.metadata
    FROM recall.hits(
        'semantic', '', nearest.embedding, nearest.index_name,
        nearest.thread_id, nearest.resource_id, nearest.top_k, nearest.threshold,
        nearest.metadata, nearest.roles, nearest.starts_at, nearest.ends_at
    ) AS h;
END;
-- +goose StatementEnd

COMMENT ON FUNCTION recall.nearest(vector, text, text, integer, double precision, jsonb, text[], timestamptz, timestamptz, text) IS
'The messages of a thread, or of all threads of a resource, whose vectors are nearest to a vector of length 1 from the index''s model, best first.';

-- +goose StatementBegin
-- The top_k messages most similar to one by the vectors that an index has of them,
-- best first, without itself: nearest, asked with message_vector. They lie in the
-- thread or resource given or, without either, in all threads of the message's
-- owner. Nothing where the message is not there or has no vector.
CREATE FUNCTION recall.similar_to(
    message_id text,
    thread_id text DEFAULT NULL,
    resource_id text DEFAULT NULL,
    top_k integer DEFAULT 4,
    threshold double precision DEFAULT NULL,
    metadata jsonb DEFAULT NULL,
    roles text[] DEFAULT NULL,
    starts_at timestamptz DEFAULT NULL,
    ends_at timestamptz DEFAULT NULL,
    index_name text DEFAULT NULL
) RETURNS SETOF recall.found
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT
        row_number() OVER (ORDER BY n.rank), n.score, n.similarity, n.words,
        n."position", n.id, n.thread_id, n.resource_id, n.role, n.text, n.created_at, n.metadata
    FROM (
        SELECT i.name, recall.message_vector(i, similar_to.message_id) AS embedding
        FROM recall.embedding_indexes AS i
        WHERE CASE WHEN similar_to.index_name IS NULL THEN i.state = 'live' ELSE i.name = similar_to.index_name END
    ) AS v
    CROSS JOIN LATERAL recall.nearest(
        v.embedding,
        similar_to.thread_id,
        CASE
            WHEN similar_to.thread_id IS NULL AND similar_to.resource_id IS NULL THEN coalesce(
                (SELECT m.resource_id FROM recall.messages AS m WHERE m.id = similar_to.message_id), ''
            )
            ELSE similar_to.resource_id
        END,
        similar_to.top_k + 1, similar_to.threshold, similar_to.metadata, similar_to.roles,
        similar_to.starts_at, similar_to.ends_at, v.name
    ) AS n
    WHERE n.id <> similar_to.message_id
    ORDER BY n.rank
    LIMIT similar_to.top_k;
END;
-- +goose StatementEnd

COMMENT ON FUNCTION recall.similar_to(text, text, text, integer, double precision, jsonb, text[], timestamptz, timestamptz, text) IS
'The messages most similar to one by their vectors, best first: of a thread, of a resource or, without either, of the message''s owner.';

-- +goose Down
DROP FUNCTION recall.similar_to(text, text, text, integer, double precision, jsonb, text[], timestamptz, timestamptz, text);
DROP FUNCTION recall.nearest(vector, text, text, integer, double precision, jsonb, text[], timestamptz, timestamptz, text);
DROP FUNCTION recall.search(text, text, text, integer, jsonb, text[], timestamptz, timestamptz);
DROP FUNCTION recall.hits(text, text, vector, text, text, text, integer, double precision, jsonb, text[], timestamptz, timestamptz);
DROP FUNCTION recall.context(text[], bigint, bigint, text);
DROP FUNCTION recall.recall(text, text, bigint, bigint, jsonb, text[], timestamptz, timestamptz, text[], bigint, bigint, boolean, boolean);
DROP TYPE recall.found;
DROP TYPE recall.recalled;
DROP FUNCTION recall.message_vector(recall.embedding_indexes, text);
DROP FUNCTION recall.page_rows(bigint, boolean);
DROP FUNCTION recall.plain_text(jsonb);
DROP FUNCTION recall.metadata_predicate(jsonb);
DROP FUNCTION recall.refuse(text, text);
