-- One row for each day and resource with messages. A condition on resource_id is
-- served by messages_resource_order_idx; others read all messages. It reads with the
-- rights of who asks.
CREATE OR REPLACE VIEW recall.daily_activity WITH (security_invoker = true) AS
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
