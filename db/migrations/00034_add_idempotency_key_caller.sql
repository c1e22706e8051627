-- +goose Up

-- Whose key it is: each caller has names of his own. Empty for the operator's.
ALTER TABLE recall.idempotency_keys ADD COLUMN caller text COLLATE "C" NOT NULL DEFAULT '';
-- Writers wait while the keys of one day are indexed.
ALTER TABLE recall.idempotency_keys
    DROP CONSTRAINT idempotency_keys_pkey,
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (caller, key);

-- +goose Down
-- Of one key of several callers none could stay.
DELETE FROM recall.idempotency_keys WHERE caller <> '';
ALTER TABLE recall.idempotency_keys
    DROP CONSTRAINT idempotency_keys_pkey,
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (key),
    DROP COLUMN caller;
