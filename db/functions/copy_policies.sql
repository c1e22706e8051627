-- Gives a table with a column resource_id the row-level security that
-- recall.messages has, and takes away what it had.
CREATE OR REPLACE FUNCTION recall.copy_policies(to_table regclass) RETURNS void
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
