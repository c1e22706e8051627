-- +goose Up

-- The thread and the resource of a message, as keys of the GIN index on content.
CREATE FUNCTION recall.scope_keys(thread_id text, resource_id text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY['t' || thread_id, 'r' || resource_id];

-- The metadata that filters speak of; empty where it is no object, so that a
-- condition such as "key is missing" holds there too.
CREATE FUNCTION recall.message_metadata(content jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(content -> 'metadata') = 'object' THEN content -> 'metadata' ELSE '{}'::jsonb END;

-- The ids of the tool calls that a message makes, as a JSON array: of its format 2
-- parts (of AI SDK v4, v5 and v6, and of core messages) and of the older
-- toolInvocations.
CREATE FUNCTION recall.tool_call_ids(content jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_path_query_array(content, '$.parts[*].toolInvocation ? (@.state != "result").toolCallId')
    || jsonb_path_query_array(
        content,
        '$.parts[*] ? (@.type == "tool-call" || exists(@.state) && !(@.state starts with "output-")).toolCallId'
    )
    || jsonb_path_query_array(content, '$.toolInvocations[*] ? (@.state != "result").toolCallId');

-- The ids of the tool calls whose results a message has. One part can hold both
-- the call and its result; then no other message may have the call.
CREATE FUNCTION recall.tool_result_ids(content jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_path_query_array(content, '$.parts[*].toolInvocation ? (@.state == "result").toolCallId')
    || jsonb_path_query_array(
        content,
        '$.parts[*] ? (@.type == "tool-result" || @.state starts with "output-").toolCallId'
    )
    || jsonb_path_query_array(content, '$.toolInvocations[*] ? (@.state == "result").toolCallId');

-- +goose Down
DROP FUNCTION recall.tool_result_ids(jsonb);
DROP FUNCTION recall.tool_call_ids(jsonb);
DROP FUNCTION recall.message_metadata(jsonb);
DROP FUNCTION recall.scope_keys(text, text);
