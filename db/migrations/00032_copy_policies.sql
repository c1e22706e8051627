-- +goose Up

-- +goose StatementBegin
-- Gives a table with a column resource_id the row-level security that
-- recall.messages has, and takes away what it had.
CREATE FUNCTION recall.copy_policies(to_table regclass) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    policy record;
BEGIN
    FOR policy IN SELECT p.polname FROM pg_policy AS p WHERE p.polrelid = to_table ORDER BY p.polname LOOP
        EXECUTE format('DROP POLICY %I ON %s', policy.polname, to_table);
    END LOOP;
    FOR policy IN
        SELECT p.policyname, p.permissive, p.cmd, p.qual, array_to_string(ARRAY(
            SELECT CASE WHEN r.name = 'public' THEN 'PUBLIC' ELSE quote_ident(r.name) END FROM unnest(p.roles) AS r (name)
        ), ', ') AS roles
        FROM pg_policies AS p
        WHERE p.schemaname = 'recall' AND p.tablename = 'messages'
        ORDER BY p.policyname
    LOOP
        EXECUTE format(
            'CREATE POLICY %I ON %s AS %s FOR %s TO %s USING (%s)',
            policy.policyname, to_table, policy.permissive, policy.cmd, policy.roles, policy.qual
        );
    END LOOP;
    EXECUTE format(
        'ALTER TABLE %s %s ROW LEVEL SECURITY',
        to_table,
        (SELECT CASE WHEN c.relrowsecurity THEN 'ENABLE' ELSE 'DISABLE' END FROM pg_class AS c WHERE c.oid = 'recall.messages'::regclass)
    );
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Creates the table of an index and gives its name. Vectors are kept in line
-- (PLAIN) as far as a row with the longest ids fits a page: fetching them from
-- TOAST would cost a search eight times its work.
CREATE OR REPLACE FUNCTION recall.create_embedding_table(of_index recall.embedding_indexes) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    table_name   CONSTANT text := 'embeddings_' || of_index.id;
    type_name    CONSTANT text := CASE WHEN of_index.dimensions <= 2000 THEN 'vector' ELSE 'halfvec' END;
    vector_bytes CONSTANT integer := of_index.dimensions * CASE WHEN of_index.dimensions <= 2000 THEN 4 ELSE 2 END;
    granted      record;
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
    -- A scope's vectors: exact search, what the graph does not have yet, and a sample
    -- in an order that no other index has, so that none is walked for it.
    EXECUTE format(
        'CREATE INDEX %I ON recall.%I (thread_id, chunk, message_id)', table_name || '_thread_idx', table_name
    );
    EXECUTE format(
        'CREATE INDEX %I ON recall.%I (resource_id, in_graph, chunk, message_id)', table_name || '_resource_idx', table_name
    );
    EXECUTE format(
        'CREATE INDEX %I ON recall.%I USING hnsw (embedding %s_ip_ops) WITH (m = %s, ef_construction = %s) WHERE in_graph',
        table_name || '_hnsw_idx', table_name, type_name, of_index.hnsw_m, of_index.hnsw_ef_construction
    );
    PERFORM recall.copy_policies(format('recall.%I', table_name)::regclass);
    -- Whoever may use the newest of the other tables may use this one.
    FOR granted IN
        SELECT
            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee,
            string_agg(a.privilege_type, ', ') AS privileges,
            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS grant_option
        FROM (
            SELECT c.relacl, c.relowner
            FROM recall.embedding_indexes AS i
            JOIN pg_class AS c ON c.oid = to_regclass('recall.embeddings_' || i.id)
            WHERE i.id <> of_index.id
            ORDER BY i.id DESC
            LIMIT 1
        ) AS other
        CROSS JOIN LATERAL aclexplode(other.relacl) AS a
        WHERE a.grantee <> other.relowner
        GROUP BY a.grantee, a.is_grantable
    LOOP
        EXECUTE format('GRANT %s ON recall.%I TO %s%s', granted.privileges, table_name, granted.grantee, granted.grant_option);
    END LOOP;
    RETURN table_name;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
-- Creates the table of an index and gives its name. Vectors are kept in line
-- (PLAIN) as far as a row with the longest ids fits a page: fetching them from
-- TOAST would cost a search eight times its work.
CREATE OR REPLACE FUNCTION recall.create_embedding_table(of_index recall.embedding_indexes) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    table_name   CONSTANT text := 'embeddings_' || of_index.id;
    type_name    CONSTANT text := CASE WHEN of_index.dimensions <= 2000 THEN 'vector' ELSE 'halfvec' END;
    vector_bytes CONSTANT integer := of_index.dimensions * CASE WHEN of_index.dimensions <= 2000 THEN 4 ELSE 2 END;
    granted      record;
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
    -- A scope's vectors: exact search, what the graph does not have yet, and a sample
    -- in an order that no other index has, so that none is walked for it.
    EXECUTE format(
        'CREATE INDEX %I ON recall.%I (thread_id, chunk, message_id)', table_name || '_thread_idx', table_name
    );
    EXECUTE format(
        'CREATE INDEX %I ON recall.%I (resource_id, in_graph, chunk, message_id)', table_name || '_resource_idx', table_name
    );
    EXECUTE format(
        'CREATE INDEX %I ON recall.%I USING hnsw (embedding %s_ip_ops) WITH (m = %s, ef_construction = %s) WHERE in_graph',
        table_name || '_hnsw_idx', table_name, type_name, of_index.hnsw_m, of_index.hnsw_ef_construction
    );
    -- Whoever may use the newest of the other tables may use this one.
    FOR granted IN
        SELECT
            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee,
            string_agg(a.privilege_type, ', ') AS privileges,
            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS grant_option
        FROM (
            SELECT c.relacl, c.relowner
            FROM recall.embedding_indexes AS i
            JOIN pg_class AS c ON c.oid = to_regclass('recall.embeddings_' || i.id)
            WHERE i.id <> of_index.id
            ORDER BY i.id DESC
            LIMIT 1
        ) AS other
        CROSS JOIN LATERAL aclexplode(other.relacl) AS a
        WHERE a.grantee <> other.relowner
        GROUP BY a.grantee, a.is_grantable
    LOOP
        EXECUTE format('GRANT %s ON recall.%I TO %s%s', granted.privileges, table_name, granted.grantee, granted.grant_option);
    END LOOP;
    RETURN table_name;
END
$$;
-- +goose StatementEnd
DROP FUNCTION recall.copy_policies(regclass);
