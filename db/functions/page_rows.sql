-- How many messages a page has: NULL for all (per_page -1). Where per_page is not
-- given it is 10, and 0 where only_included.
CREATE OR REPLACE FUNCTION recall.page_rows(per_page bigint, only_included boolean) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN per_page = -1 THEN NULL
    WHEN per_page IS NULL AND only_included THEN 0
    ELSE coalesce(per_page, 10)
END;
