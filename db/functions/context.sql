-- Messages by their ids, each with `before` messages before and `after` messages
-- after it in its own thread, as include does over HTTP; where resource_id is
-- given, of that resource. Order: oldest first (created_at, thread_id, position);
-- each message once. Ids that there are not add nothing.
--
-- Planned as part of its caller, as recall is.
CREATE OR REPLACE FUNCTION recall.context(
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

COMMENT ON FUNCTION recall.context(text[], bigint, bigint, text) IS
'Messages by their ids, each with the messages before and after it in its thread, oldest first.';
