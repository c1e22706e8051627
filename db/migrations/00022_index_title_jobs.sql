-- +goose Up

-- The jobs that are to give a thread a title, the dead among them, for
-- ThreadListUntitled. River's index on args would have to read what it has put off.
CREATE INDEX river_job_title_idx ON recall.river_job ((args ->> 'threadId') COLLATE "C")
    WHERE kind = 'title' AND state <> 'completed';

-- +goose Down
DROP INDEX recall.river_job_title_idx;
