-- +goose Up

-- The memory configuration stored for an agentId. An agent without a row has
-- the defaults.
CREATE TABLE recall.agents (
    id         text COLLATE "C" NOT NULL,
    config     jsonb NOT NULL,
    created_at timestamptz(3) NOT NULL,
    updated_at timestamptz(3) NOT NULL,
    CONSTRAINT agents_pkey PRIMARY KEY (id),
    CONSTRAINT agents_config_check CHECK (jsonb_typeof(config) = 'object')
);

-- +goose Down
DROP TABLE recall.agents;
