-- +goose Up

-- The jobs that are not done, oldest first, for the age of the backlog.
CREATE INDEX river_job_waiting_idx ON recall.river_job (created_at) WHERE finalized_at IS NULL AND queue <> 'maintenance';

-- +goose Down
DROP INDEX recall.river_job_waiting_idx;
