-- +goose Up

-- The view has the name that readers look for.
DROP FUNCTION recall.embedding_coverage(recall.embedding_indexes);

-- +goose StatementBegin
-- How many messages an index has, and how many of those with a text it lacks.
-- Reads the whole index, and all messages it lacks.
CREATE FUNCTION recall.index_coverage(of_index recall.embedding_indexes)
RETURNS TABLE (embedded bigint, missing bigint)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        $sql$
        SELECT
            (SELECT count(*) FROM recall.%1$I AS e WHERE e.chunk = 0),
            (
                SELECT count(*)
                FROM recall.messages AS m
                WHERE m.role IN ('user', 'assistant')
                    AND NOT EXISTS (SELECT FROM recall.%1$I AS e WHERE e.message_id = m.id)
                    AND EXISTS (
                        SELECT FROM jsonb_array_elements_text(recall.message_texts(m.content)) AS t (words) WHERE t.words ~ '\S'
                    )
            )
        $sql$,
        'embeddings_' || of_index.id
    );
END
$$;
-- +goose StatementEnd

-- One row a message, as text. messages_thread_order_idx and
-- messages_resource_order_idx serve conditions on thread_id or resource_id, also
-- with one on created_at. It reads with the rights of who asks.
CREATE VIEW recall.message_text WITH (security_invoker = true) AS
SELECT
    m.seq AS "position",
    m.id,
    m.thread_id,
    m.resource_id,
    m.role,
    recall.plain_text(m.content) AS text,
    m.created_at,
    recall.message_metadata(m.content) AS metadata
FROM recall.messages AS m;

COMMENT ON VIEW recall.message_text IS 'One row a message: who said what, and when.';
COMMENT ON COLUMN recall.message_text."position" IS 'The position at which the message came into its thread, from 1.';
COMMENT ON COLUMN recall.message_text.id IS 'The message''s id.';
COMMENT ON COLUMN recall.message_text.thread_id IS 'The thread it is in.';
COMMENT ON COLUMN recall.message_text.resource_id IS 'The resource that owns the thread.';
COMMENT ON COLUMN recall.message_text.role IS 'Who speaks: user, assistant, system or tool.';
COMMENT ON COLUMN recall.message_text.text IS 'What the message says, its texts one a line; empty where it has none.';
COMMENT ON COLUMN recall.message_text.created_at IS 'When it was said, in milliseconds.';
COMMENT ON COLUMN recall.message_text.metadata IS 'The message''s metadata; an empty object where it has none.';

-- One row a thread. The first and last message of each are looked up in
-- messages_thread_order_idx, where they are asked for. It reads with the rights of
-- who asks.
CREATE VIEW recall.thread_summary WITH (security_invoker = true) AS
SELECT
    t.id AS thread_id,
    t.resource_id,
    t.agent_id,
    t.title,
    t.message_count AS messages,
    (
        SELECT m.created_at
        FROM recall.messages AS m
        WHERE m.thread_id = t.id
        ORDER BY m.created_at, m.seq
        LIMIT 1
    ) AS first_message_at,
    (
        SELECT m.created_at
        FROM recall.messages AS m
        WHERE m.thread_id = t.id
        ORDER BY m.created_at DESC, m.seq DESC
        LIMIT 1
    ) AS last_message_at,
    t.created_at,
    t.updated_at,
    t.source_thread_id,
    t.metadata
FROM recall.threads AS t;

COMMENT ON VIEW recall.thread_summary IS 'One row a thread: whose it is, how many messages it has and from when to when.';
COMMENT ON COLUMN recall.thread_summary.thread_id IS 'The thread''s id.';
COMMENT ON COLUMN recall.thread_summary.resource_id IS 'The resource that owns it.';
COMMENT ON COLUMN recall.thread_summary.agent_id IS 'The agent that it was created for; NULL for none.';
COMMENT ON COLUMN recall.thread_summary.title IS 'Its title; empty without one.';
COMMENT ON COLUMN recall.thread_summary.messages IS 'How many messages it has.';
COMMENT ON COLUMN recall.thread_summary.first_message_at IS 'When its first message was said; NULL where it has none.';
COMMENT ON COLUMN recall.thread_summary.last_message_at IS 'When its last message was said; NULL where it has none.';
COMMENT ON COLUMN recall.thread_summary.created_at IS 'When it was created.';
COMMENT ON COLUMN recall.thread_summary.updated_at IS 'When it was last changed.';
COMMENT ON COLUMN recall.thread_summary.source_thread_id IS 'The thread that it was cloned from; NULL where it is no clone.';
COMMENT ON COLUMN recall.thread_summary.metadata IS 'Its metadata; NULL without.';

-- One row for each day and resource with messages. A condition on resource_id is
-- served by messages_resource_order_idx; others read all messages. It reads with the
-- rights of who asks.
CREATE VIEW recall.daily_activity WITH (security_invoker = true) AS
SELECT
    (m.created_at AT TIME ZONE 'UTC')::date AS day,
    m.resource_id,
    count(DISTINCT m.thread_id) AS threads,
    count(*) AS messages,
    count(*) FILTER (WHERE m.role = 'user') AS user_messages,
    count(*) FILTER (WHERE m.role = 'assistant') AS assistant_messages
FROM recall.messages AS m
GROUP BY 1, 2;

COMMENT ON VIEW recall.daily_activity IS 'One row for each day and resource with messages.';
COMMENT ON COLUMN recall.daily_activity.day IS 'The day in UTC.';
COMMENT ON COLUMN recall.daily_activity.resource_id IS 'The resource that owns the threads.';
COMMENT ON COLUMN recall.daily_activity.threads IS 'In how many threads something was said.';
COMMENT ON COLUMN recall.daily_activity.messages IS 'How many messages there are of the day.';
COMMENT ON COLUMN recall.daily_activity.user_messages IS 'How many of them are the user''s.';
COMMENT ON COLUMN recall.daily_activity.assistant_messages IS 'How many of them are the assistant''s.';

-- One row an embedding index: of how many messages it has the vectors, and of how
-- many it lacks them (index_coverage, which reads all of both). It reads with the
-- rights of who asks.
CREATE VIEW recall.embedding_coverage WITH (security_invoker = true) AS
SELECT
    i.name AS index_name,
    i.model,
    i.dimensions,
    i.state,
    c.embedded::bigint AS embedded,
    c.missing::bigint AS missing
FROM recall.embedding_indexes AS i
CROSS JOIN LATERAL recall.index_coverage(i) AS c;

COMMENT ON VIEW recall.embedding_coverage IS 'One row an embedding index: how many messages it has the vectors of.';
COMMENT ON COLUMN recall.embedding_coverage.index_name IS 'The index''s name.';
COMMENT ON COLUMN recall.embedding_coverage.model IS 'The model whose vectors it has.';
COMMENT ON COLUMN recall.embedding_coverage.dimensions IS 'The length of its vectors.';
COMMENT ON COLUMN recall.embedding_coverage.state IS 'building, live or retired; searches use the live one.';
COMMENT ON COLUMN recall.embedding_coverage.embedded IS 'How many messages it has.';
COMMENT ON COLUMN recall.embedding_coverage.missing IS 'How many messages with a text it lacks.';

-- +goose Down
DROP VIEW recall.embedding_coverage;
DROP VIEW recall.daily_activity;
DROP VIEW recall.thread_summary;
DROP VIEW recall.message_text;
DROP FUNCTION recall.index_coverage(recall.embedding_indexes);

-- +goose StatementBegin
-- How many messages an index has, and how many of those with a text it lacks.
-- Reads the whole index, and all messages it lacks.
CREATE FUNCTION recall.embedding_coverage(of_index recall.embedding_indexes)
RETURNS TABLE (embedded bigint, missing bigint)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        $sql$
        SELECT
            (SELECT count(*) FROM recall.%1$I AS e WHERE e.chunk = 0),
            (
                SELECT count(*)
                FROM recall.messages AS m
                WHERE m.role IN ('user', 'assistant')
                    AND NOT EXISTS (SELECT FROM recall.%1$I AS e WHERE e.message_id = m.id)
                    AND EXISTS (
                        SELECT FROM jsonb_array_elements_text(recall.message_texts(m.content)) AS t (words) WHERE t.words ~ '\S'
                    )
            )
        $sql$,
        'embeddings_' || of_index.id
    );
END
$$;
-- +goose StatementEnd
