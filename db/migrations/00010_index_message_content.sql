-- +goose Up

-- What is looked for in the content of messages: metadata, tool calls and words,
-- beside the scope. PostgreSQL intersects scope and condition inside the index,
-- before it touches a row.
--
-- The list of pending entries is short, 64 kB or some 60 messages: merging them in
-- bulk halves the cost of a save, and what a search reads of the list is
-- hundredths of a millisecond. The 4 MB that are usual make searches slow, and the
-- save that merges them stall.
CREATE INDEX messages_content_idx ON recall.messages USING gin (
    recall.scope_keys(thread_id, resource_id),
    recall.message_metadata(content) jsonb_path_ops,
    recall.tool_call_ids(content) jsonb_path_ops,
    lexemes
) WITH (fastupdate = on, gin_pending_list_limit = 64);

-- +goose Down
DROP INDEX recall.messages_content_idx;
