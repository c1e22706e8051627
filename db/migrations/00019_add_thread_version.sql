-- +goose Up

-- Counts the changes of title, metadata and owner, for those who want to change
-- what they have read and nothing newer. Messages come and go without it.
ALTER TABLE recall.threads ADD COLUMN version bigint NOT NULL DEFAULT 1;

-- +goose Down
ALTER TABLE recall.threads DROP COLUMN version;
