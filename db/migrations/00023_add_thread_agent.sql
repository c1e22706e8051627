-- +goose Up

-- The agent whose call created the thread, by whose configuration it is kept; NULL
-- for none. It stays, and clones have their source's.
ALTER TABLE recall.threads ADD COLUMN agent_id text COLLATE "C";

-- +goose Down
ALTER TABLE recall.threads DROP COLUMN agent_id;
