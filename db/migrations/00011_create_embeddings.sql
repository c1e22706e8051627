-- +goose Up

CREATE EXTENSION IF NOT EXISTS vector;

-- The embedding indexes: the vectors of one model each, in a table of their own,
-- recall.embeddings_<id>. Searches use the live one.
CREATE TABLE recall.embedding_indexes (
    id                   smallint GENERATED ALWAYS AS IDENTITY,
    name                 text COLLATE "C" NOT NULL,
    model                text NOT NULL,
    dimensions           integer NOT NULL,
    -- Whether vectors are shorter than 1 by a length prior: then similarity is
    -- cosine * |v| / (|v| + 150), |v| being the norm of the sum of the tokens'
    -- vectors. All others are of length 1, and similarity is the cosine.
    length_prior         boolean NOT NULL DEFAULT false,
    -- building: filled, not searched. live: searched. retired: was live.
    state                text NOT NULL DEFAULT 'building',
    hnsw_m               integer NOT NULL DEFAULT 16,
    hnsw_ef_construction integer NOT NULL DEFAULT 64,
    created_at           timestamptz(3) NOT NULL,
    -- When it last became live; the newest retired one is what a rollback revives.
    live_at              timestamptz(3),
    CONSTRAINT embedding_indexes_pkey PRIMARY KEY (id),
    CONSTRAINT embedding_indexes_name_key UNIQUE (name),
    CONSTRAINT embedding_indexes_name_check CHECK (name <> ''),
    -- vector holds an HNSW index to 2,000 dimensions, halfvec to 4,000.
    CONSTRAINT embedding_indexes_dimensions_check CHECK (dimensions BETWEEN 1 AND 4000),
    CONSTRAINT embedding_indexes_state_check CHECK (state IN ('building', 'live', 'retired')),
    CONSTRAINT embedding_indexes_hnsw_check CHECK (
        hnsw_m BETWEEN 2 AND 100 AND hnsw_ef_construction BETWEEN greatest(4, 2 * hnsw_m) AND 1000
    )
);

-- At most one index is live.
CREATE UNIQUE INDEX embedding_indexes_live_key ON recall.embedding_indexes (state) WHERE state = 'live';

-- Creates the table of an index and gives its name. Vectors are kept in line
-- (PLAIN) as far as a row with the longest ids fits a page: fetching them from
-- TOAST would cost a search eight times its work.
-- +goose StatementBegin
CREATE FUNCTION recall.create_embedding_table(of_index recall.embedding_indexes) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    table_name   CONSTANT text := 'embeddings_' || of_index.id;
    type_name    CONSTANT text := CASE WHEN of_index.dimensions <= 2000 THEN 'vector' ELSE 'halfvec' END;
    vector_bytes CONSTANT integer := of_index.dimensions * CASE WHEN of_index.dimensions <= 2000 THEN 4 ELSE 2 END;
BEGIN
    EXECUTE format(
        $create$
        CREATE TABLE recall.%1$I (
            message_id  text COLLATE "C" NOT NULL,
            chunk       smallint NOT NULL,
            thread_id   text COLLATE "C" NOT NULL,
            resource_id text COLLATE "C" NOT NULL,
            -- SHA-256 of the message's text.
            text_hash   bytea NOT NULL,
            -- NULL where the text has no vector.
            embedding   %2$s(%3$s),
            -- Whether the HNSW index has it. Small resources do without.
            in_graph    boolean NOT NULL DEFAULT false,
            CONSTRAINT %4$I PRIMARY KEY (message_id, chunk),
            CONSTRAINT %5$I FOREIGN KEY (message_id) REFERENCES recall.messages (id) ON DELETE CASCADE,
            CONSTRAINT %6$I FOREIGN KEY (thread_id, resource_id) REFERENCES recall.threads (id, resource_id)
                ON UPDATE CASCADE ON DELETE CASCADE
        )
        $create$,
        table_name, type_name, of_index.dimensions,
        table_name || '_pkey', table_name || '_message_id_fkey', table_name || '_thread_id_resource_id_fkey'
    );
    EXECUTE format(
        'ALTER TABLE recall.%I ALTER COLUMN embedding SET STORAGE %s',
        table_name, CASE WHEN vector_bytes <= 6200 THEN 'PLAIN' ELSE 'EXTERNAL' END
    );
    -- A scope's vectors: exact search, and what the graph does not have yet.
    EXECUTE format('CREATE INDEX %I ON recall.%I (thread_id)', table_name || '_thread_idx', table_name);
    EXECUTE format('CREATE INDEX %I ON recall.%I (resource_id, in_graph)', table_name || '_resource_idx', table_name);
    EXECUTE format(
        'CREATE INDEX %I ON recall.%I USING hnsw (embedding %s_ip_ops) WITH (m = %s, ef_construction = %s) WHERE in_graph',
        table_name || '_hnsw_idx', table_name, type_name, of_index.hnsw_m, of_index.hnsw_ef_construction
    );
    RETURN table_name;
END
$$;
-- +goose StatementEnd

-- The index of the embedder in the program.
INSERT INTO recall.embedding_indexes (name, model, dimensions, length_prior, state, created_at, live_at)
VALUES ('potion-base-8M', 'potion-base-8M', 256, true, 'live', date_trunc('milliseconds', now()), date_trunc('milliseconds', now()));
SELECT recall.create_embedding_table(i) FROM recall.embedding_indexes AS i;

-- +goose Down
-- +goose StatementBegin
DO $$
DECLARE
    index_id smallint;
BEGIN
    FOR index_id IN SELECT id FROM recall.embedding_indexes LOOP
        EXECUTE format('DROP TABLE IF EXISTS recall.%I', 'embeddings_' || index_id);
    END LOOP;
END
$$;
-- +goose StatementEnd
DROP FUNCTION recall.create_embedding_table(recall.embedding_indexes);
DROP TABLE recall.embedding_indexes;
