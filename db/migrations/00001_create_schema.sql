-- +goose Up

-- The program creates the schema before the first migration, since its table of
-- versions lives there too; this line is for tools that read migrations only.
CREATE SCHEMA IF NOT EXISTS recall;

-- +goose Down
-- The schema stays: the table of versions is in it.
SELECT 1;
