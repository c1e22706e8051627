-- +goose Up

-- What is looked for in the content of messages: metadata, tool calls and words,
-- beside the scope. PostgreSQL intersects scope and condition inside the index,
-- before it touches a row. fastupdate is off: its pending list makes single
-- saves stall and searches slow.
CREATE INDEX messages_content_idx ON recall.messages USING gin (
    recall.scope_keys(thread_id, resource_id),
    recall.message_metadata(content) jsonb_path_ops,
    recall.tool_call_ids(content) jsonb_path_ops,
    lexemes
) WITH (fastupdate = off);

-- +goose Down
DROP INDEX recall.messages_content_idx;
