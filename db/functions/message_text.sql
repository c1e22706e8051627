-- One row a message, as text. messages_thread_order_idx and
-- messages_resource_order_idx serve conditions on thread_id or resource_id, also
-- with one on created_at. It reads with the rights of who asks.
CREATE OR REPLACE VIEW recall.message_text WITH (security_invoker = true) AS
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
