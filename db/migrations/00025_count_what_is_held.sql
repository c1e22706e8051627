-- +goose Up

-- +goose StatementBegin
-- What is held of a resource: a row for each table that can hold anything of one,
-- with how many rows it does. All are 0 once it is erased, which is how to verify it.
-- The tables are those of the catalog with a column resource_id or resource_ids,
-- resources, and the jobs. Order: by name. Reads by index what it counts.
CREATE FUNCTION recall.held(of_resource_id text) RETURNS TABLE (table_name text, held bigint)
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
-- +goose StatementEnd

-- +goose StatementBegin
-- Removes from an index the vectors of threads, and counts them. The foreign keys
-- would do it too, but message by message.
CREATE FUNCTION recall.delete_embeddings(
    of_index recall.embedding_indexes, thread_ids text[]
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    deleted bigint;
BEGIN
    EXECUTE format('DELETE FROM recall.%I AS e WHERE e.thread_id = ANY ($1)', 'embeddings_' || of_index.id)
    USING thread_ids;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION recall.delete_embeddings(recall.embedding_indexes, text[]);
DROP FUNCTION recall.held(text);
