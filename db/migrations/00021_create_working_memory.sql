-- +goose Up

-- Working memory: a text that is kept up to date, of a resource or of one of its
-- threads.
CREATE TABLE recall.working_memories (
    id          text COLLATE "C" NOT NULL DEFAULT recall.new_id(),
    -- Whose it is; of a thread's, the thread's owner.
    resource_id text COLLATE "C" NOT NULL,
    -- NULL: it is the resource's, for all its threads.
    thread_id   text COLLATE "C",
    -- The version that counts; 0 only until the first one is in.
    version     bigint NOT NULL DEFAULT 0,
    CONSTRAINT working_memories_pkey PRIMARY KEY (id),
    -- One of a resource and one of a thread. It serves look-ups of either kind, and
    -- the foreign key.
    CONSTRAINT working_memories_resource_id_thread_id_key UNIQUE NULLS NOT DISTINCT (resource_id, thread_id),
    -- What versions refer to, as messages do to threads.
    CONSTRAINT working_memories_id_resource_id_key UNIQUE (id, resource_id),
    CONSTRAINT working_memories_thread_id_resource_id_fkey FOREIGN KEY (thread_id, resource_id)
        REFERENCES recall.threads (id, resource_id) ON UPDATE CASCADE ON DELETE CASCADE
);

-- The texts: the current one and those before it, as far as they are kept.
CREATE TABLE recall.working_memory_versions (
    working_memory_id text COLLATE "C" NOT NULL,
    resource_id       text COLLATE "C" NOT NULL,
    version           bigint NOT NULL,
    content           text NOT NULL,
    created_at        timestamptz(3) NOT NULL,
    CONSTRAINT working_memory_versions_pkey PRIMARY KEY (working_memory_id, version),
    CONSTRAINT working_memory_versions_working_memory_id_resource_id_fkey FOREIGN KEY (working_memory_id, resource_id)
        REFERENCES recall.working_memories (id, resource_id) ON UPDATE CASCADE ON DELETE CASCADE,
    CONSTRAINT working_memory_versions_version_check CHECK (version >= 1)
);

-- The place that was set aside for it knew neither threads nor history.
INSERT INTO recall.working_memories (resource_id, version)
SELECT r.id, 1
FROM recall.resources AS r
WHERE r.working_memory IS NOT NULL;

INSERT INTO recall.working_memory_versions (working_memory_id, resource_id, version, content, created_at)
SELECT w.id, w.resource_id, w.version, r.working_memory, r.updated_at
FROM recall.working_memories AS w
JOIN recall.resources AS r ON r.id = w.resource_id;

ALTER TABLE recall.resources
    DROP COLUMN working_memory,
    DROP COLUMN version;

-- +goose Down
ALTER TABLE recall.resources
    ADD COLUMN working_memory text,
    ADD COLUMN version bigint NOT NULL DEFAULT 1;

INSERT INTO recall.resources AS r (id, working_memory, version, created_at, updated_at)
SELECT w.resource_id, v.content, w.version, v.created_at, v.created_at
FROM recall.working_memories AS w
JOIN recall.working_memory_versions AS v ON v.working_memory_id = w.id AND v.version = w.version
WHERE w.thread_id IS NULL
ON CONFLICT ON CONSTRAINT resources_pkey DO UPDATE
SET working_memory = excluded.working_memory,
    version = excluded.version;

DROP TABLE recall.working_memory_versions;
DROP TABLE recall.working_memories;
