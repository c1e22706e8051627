-- +goose Up

-- The keys that callers show. None is ever removed, so that a server which has asked
-- for credentials once does not cease to when the last key has ended.
CREATE TABLE recall.api_keys (
    id           bigint GENERATED ALWAYS AS IDENTITY,
    -- What the operator calls it; empty for nothing.
    name         text NOT NULL DEFAULT '',
    -- SHA-256 of the key. It has 256 random bits, which nobody finds by trying.
    secret_hash  bytea NOT NULL,
    -- What it reaches: with admin all resources and the operator's routes, else one
    -- resource, or those whose ids begin with prefix, or all.
    admin        boolean NOT NULL DEFAULT false,
    resource     text COLLATE "C",
    prefix       text COLLATE "C",
    read_only    boolean NOT NULL DEFAULT false,
    created_at   timestamptz(3) NOT NULL,
    -- From when on it counts no longer; NULL for never.
    expires_at   timestamptz(3),
    revoked_at   timestamptz(3),
    -- Exact to a minute; NULL for never.
    last_used_at timestamptz(3),
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_secret_hash_key UNIQUE (secret_hash),
    CONSTRAINT api_keys_secret_hash_check CHECK (octet_length(secret_hash) = 32),
    CONSTRAINT api_keys_reach_check CHECK (admin::integer + num_nonnulls(resource, prefix) <= 1),
    -- Empty, they would read as no bound.
    CONSTRAINT api_keys_resource_check CHECK (resource <> ''),
    CONSTRAINT api_keys_prefix_check CHECK (prefix <> '')
);

-- +goose Down
DROP TABLE recall.api_keys;
