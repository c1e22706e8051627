-- +goose NO TRANSACTION
-- +goose Up

-- The threads of an agent, those first that nothing has been said in for longest.
-- An earlier attempt that was interrupted has left an index that is of no use.
DROP INDEX IF EXISTS recall.threads_agent_updated_at_idx;
CREATE INDEX CONCURRENTLY threads_agent_updated_at_idx ON recall.threads (agent_id, updated_at, id)
    WHERE agent_id IS NOT NULL;

-- +goose Down
DROP INDEX IF EXISTS recall.threads_agent_updated_at_idx;
