-- +goose Up

-- The answers to requests that came with a key, so that the same request under the
-- same key is answered alike and not done again. A row commits with what the
-- request wrote. It counts for 24 hours.
CREATE TABLE recall.idempotency_keys (
    key          text COLLATE "C" NOT NULL,
    -- SHA-256 of the request.
    request_hash bytea NOT NULL,
    -- NULL until the request is done, which only its own transaction sees.
    status       smallint,
    answer       bytea,
    -- The answer's ETag; empty for none.
    etag         text NOT NULL DEFAULT '',
    -- All that request and answer call resourceId: whose data the answer may hold.
    resource_ids text[] COLLATE "C" NOT NULL DEFAULT '{}',
    created_at   timestamptz(3) NOT NULL,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (key),
    -- What failed has changed nothing, and is tried afresh.
    CONSTRAINT idempotency_keys_status_check CHECK (status BETWEEN 200 AND 299),
    CONSTRAINT idempotency_keys_answer_check CHECK (num_nulls(status, answer) IN (0, 2))
);

-- Those that have expired.
CREATE INDEX idempotency_keys_created_at_idx ON recall.idempotency_keys (created_at);
-- Those of a resource that is erased.
CREATE INDEX idempotency_keys_resource_ids_idx ON recall.idempotency_keys USING gin (resource_ids) WITH (fastupdate = off);

-- +goose Down
DROP TABLE recall.idempotency_keys;
