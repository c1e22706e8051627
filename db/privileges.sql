-- What may be done in the schema by whom. It runs after migrations and whenever a
-- role is made, and gives what has come since: to a server, which is who may read,
-- write and delete messages, and to an analyst, which is who may read message_text
-- and is no server. Functions lend nobody their owner's rights; still, nobody may
-- execute them whom it was not granted to.
DO $$
DECLARE
    role record;
    item text;
BEGIN
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA recall FROM PUBLIC;
    FOR role IN
        SELECT quote_ident(r.rolname) AS name, g.server
        FROM (
            SELECT
                a.grantee,
                count(*) FILTER (
                    WHERE c.relname = 'messages' AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
                ) = 4 AS server
            FROM pg_class AS c
            CROSS JOIN LATERAL aclexplode(c.relacl) AS a
            WHERE c.oid IN ('recall.messages'::regclass, 'recall.message_text'::regclass) AND a.grantee <> c.relowner
            GROUP BY a.grantee
            HAVING bool_or(c.relname = 'message_text') OR count(DISTINCT a.privilege_type) >= 4
        ) AS g
        JOIN pg_roles AS r ON r.oid = g.grantee
        ORDER BY r.rolname
    LOOP
        IF role.server THEN
            EXECUTE format('GRANT USAGE ON SCHEMA recall TO %s', role.name);
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA recall TO %s', role.name);
            EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA recall TO %s', role.name);
            EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA recall TO %s', role.name);
            CONTINUE;
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA recall TO %s', role.name);
        FOR item IN
            SELECT c.oid::regclass::text
            FROM pg_class AS c
            WHERE c.relnamespace = 'recall'::regnamespace
                AND (c.relkind = 'v' OR c.relkind = 'r' AND c.relname ~ '^(threads|messages|embedding_indexes|embeddings_\d+)$')
        LOOP
            EXECUTE format('GRANT SELECT ON %s TO %s', item, role.name);
        END LOOP;
        -- What reads is STABLE or IMMUTABLE.
        FOR item IN
            SELECT p.oid::regprocedure::text
            FROM pg_proc AS p
            WHERE p.pronamespace = 'recall'::regnamespace AND p.provolatile <> 'v' AND p.proname !~ '^river_'
        LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', item, role.name);
        END LOOP;
    END LOOP;
END
$$
