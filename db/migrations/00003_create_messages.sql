-- +goose Up

CREATE TABLE recall.messages (
    id          text COLLATE "C" NOT NULL,
    thread_id   text COLLATE "C" NOT NULL,
    -- The thread's owner, copied down so that every index can lead with it.
    resource_id text COLLATE "C" NOT NULL,
    -- The position at which the message came into its thread, from 1.
    seq         bigint NOT NULL,
    role        text NOT NULL,
    type        text NOT NULL DEFAULT '',
    content     jsonb NOT NULL,
    created_at  timestamptz(3) NOT NULL,
    updated_at  timestamptz(3) NOT NULL,
    CONSTRAINT messages_pkey PRIMARY KEY (id),
    CONSTRAINT messages_thread_id_resource_id_fkey FOREIGN KEY (thread_id, resource_id)
        REFERENCES recall.threads (id, resource_id) ON UPDATE CASCADE ON DELETE CASCADE,
    CONSTRAINT messages_content_check CHECK (jsonb_typeof(content) = 'object')
);

-- The order of a thread and of a resource: pages, context, date ranges.
CREATE INDEX messages_thread_order_idx ON recall.messages (thread_id, created_at, seq);
CREATE INDEX messages_resource_order_idx ON recall.messages (resource_id, created_at, thread_id, seq);

-- Made last: while the table is empty, all indexes that begin with thread_id cost
-- the same to the planner, and of equals it takes the newest. Look-ups by
-- position are to use this one.
ALTER TABLE recall.messages ADD CONSTRAINT messages_thread_id_seq_key UNIQUE (thread_id, seq);

-- +goose Down
DROP TABLE recall.messages;
