-- What is held of a resource: a row for each table that can hold anything of one,
-- with how many rows it does. All are 0 once it is erased, which is how to verify it.
-- The tables are those of the catalog with a column resource_id or resource_ids,
-- resources, and the jobs. Order: by name. Reads by index what it counts.
CREATE OR REPLACE FUNCTION recall.held(of_resource_id text) RETURNS TABLE (table_name text, held bigint)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    condition text;
BEGIN
    FOR table_name, condition IN
        SELECT
            c.relname,
            CASE
                WHEN a.attname = 'resource_id' THEN 'h.resource_id = $1'
                WHEN a.attname = 'resource_ids' THEN 'h.resource_ids @> ARRAY[$1]'
                WHEN c.relname = 'resources' THEN 'h.id = $1'
                ELSE 'h.args @> jsonb_build_object(''resourceId'', $1)'
            END
        FROM pg_class AS c
        LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid
            AND a.attname IN ('resource_id', 'resource_ids')
            AND NOT a.attisdropped
        WHERE c.relnamespace = 'recall'::regnamespace
            AND c.relkind IN ('r', 'p')
            AND (a.attname IS NOT NULL OR c.relname IN ('resources', 'river_job'))
        ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT count(*) FROM recall.%I AS h WHERE %s', table_name, condition)
        INTO held
        USING of_resource_id;
        RETURN NEXT;
    END LOOP;
END
$$;
