-- The columns of River's table of jobs that statements name, for sqlc alone:
-- River's own migrations create the table (db/migrate_jobs.go).
CREATE TABLE recall.river_job (
    id           bigint PRIMARY KEY,
    state        text NOT NULL,
    attempt      smallint NOT NULL,
    max_attempts smallint NOT NULL,
    created_at   timestamptz NOT NULL,
    scheduled_at timestamptz NOT NULL,
    finalized_at timestamptz,
    args         jsonb NOT NULL,
    errors       jsonb[],
    kind         text NOT NULL,
    metadata     jsonb NOT NULL,
    queue        text NOT NULL
);
