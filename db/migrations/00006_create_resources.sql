-- +goose Up

-- What is kept of a resource (a user or another owner of threads) beside its
-- threads. A resource needs no row here to own threads.
CREATE TABLE recall.resources (
    id             text COLLATE "C" NOT NULL,
    working_memory text,
    metadata       jsonb,
    version        bigint NOT NULL DEFAULT 1,
    created_at     timestamptz(3) NOT NULL,
    updated_at     timestamptz(3) NOT NULL,
    CONSTRAINT resources_pkey PRIMARY KEY (id),
    CONSTRAINT resources_metadata_check CHECK (jsonb_typeof(metadata) = 'object')
);

-- +goose Down
DROP TABLE recall.resources;
