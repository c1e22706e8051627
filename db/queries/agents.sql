-- name: AgentGet :one
-- The configuration of an agent. No row: none is stored.
SELECT a.config
FROM recall.agents AS a
WHERE a.id = @id::text;

-- name: AgentList :many
SELECT a.id, a.config
FROM recall.agents AS a
ORDER BY a.id;

-- name: AgentSave :exec
INSERT INTO recall.agents AS a (id, config, created_at, updated_at)
VALUES (
    @id::text,
    @config::jsonb,
    date_trunc('milliseconds', statement_timestamp()),
    date_trunc('milliseconds', statement_timestamp())
)
ON CONFLICT ON CONSTRAINT agents_pkey DO UPDATE
SET config = excluded.config,
    updated_at = excluded.updated_at;

-- name: AgentDelete :execrows
DELETE FROM recall.agents AS a
WHERE a.id = @id::text;
