-- One row a thread. The first and last message of each are looked up in
-- messages_thread_order_idx, where they are asked for. It reads with the rights of
-- who asks.
CREATE OR REPLACE VIEW recall.thread_summary WITH (security_invoker = true) AS
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
