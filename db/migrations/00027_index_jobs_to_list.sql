-- +goose Up

-- The jobs that JobList lists, newest first, which the primary key has among all
-- that are completed: the dead, and those that are not done.
CREATE INDEX river_job_dead_idx ON recall.river_job (id)
    WHERE finalized_at IS NOT NULL AND state <> 'completed' AND queue <> 'maintenance';
CREATE INDEX river_job_unfinished_idx ON recall.river_job (id) WHERE finalized_at IS NULL AND queue <> 'maintenance';

-- The dead jobs of a message, for JobCountGivenUp. Few jobs die: what is put off
-- would have to be read by each look.
CREATE INDEX river_job_dead_message_ids_idx ON recall.river_job USING gin ((args -> 'messageIds')) WITH (fastupdate = off)
    WHERE (state IN ('cancelled', 'discarded')) IS TRUE;

-- +goose Down
DROP INDEX recall.river_job_dead_message_ids_idx;
DROP INDEX recall.river_job_unfinished_idx;
DROP INDEX recall.river_job_dead_idx;
