-- +goose Up

-- Ids are compared byte by byte (COLLATE "C"), so that their order is the same
-- on every server, whatever its locale, and in every client.
CREATE TABLE recall.threads (
    id               text COLLATE "C" NOT NULL,
    resource_id      text COLLATE "C" NOT NULL,
    title            text NOT NULL DEFAULT '',
    -- Who gave the title. A title of the user's is never overwritten by a
    -- generated one.
    title_source     text NOT NULL DEFAULT 'none',
    metadata         jsonb,
    -- Kept by the statements that add and remove messages.
    message_count    bigint NOT NULL DEFAULT 0,
    -- The last position given to a message of the thread; never reused.
    last_seq         bigint NOT NULL DEFAULT 0,
    -- The thread this one was cloned from. No foreign key: a clone outlives its
    -- source and keeps the memory of it.
    source_thread_id text COLLATE "C",
    created_at       timestamptz(3) NOT NULL,
    updated_at       timestamptz(3) NOT NULL,
    CONSTRAINT threads_pkey PRIMARY KEY (id),
    -- What messages refer to, so that the owner copied down to them is right by
    -- constraint and follows a transfer by cascade.
    CONSTRAINT threads_id_resource_id_key UNIQUE (id, resource_id),
    CONSTRAINT threads_title_source_check CHECK (title_source IN ('none', 'user', 'generated')),
    CONSTRAINT threads_metadata_check CHECK (jsonb_typeof(metadata) = 'object'),
    CONSTRAINT threads_message_count_check CHECK (message_count BETWEEN 0 AND last_seq)
);

-- Threads of a resource, and of all, by either time.
CREATE INDEX threads_resource_created_at_idx ON recall.threads (resource_id, created_at, id);
CREATE INDEX threads_resource_updated_at_idx ON recall.threads (resource_id, updated_at, id);
CREATE INDEX threads_created_at_idx ON recall.threads (created_at, id);
CREATE INDEX threads_updated_at_idx ON recall.threads (updated_at, id);
-- The clones of a thread.
CREATE INDEX threads_source_thread_id_idx ON recall.threads (source_thread_id, created_at, id)
    WHERE source_thread_id IS NOT NULL;

-- +goose Down
DROP TABLE recall.threads;
