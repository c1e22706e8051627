-- +goose Up

-- Whether a caller reaches what belongs to a resource. reach is {resource, prefix}: the
-- one resource that he reaches, and what the ids of all that he reaches begin with,
-- byte by byte; either is empty for no such bound. NULL reaches nothing, so that a
-- statement that is not told whom it is for finds nothing. Who reaches even the empty
-- id, which is nobody's, is bound by nothing.
--
-- It is inlined, and asked of what is found by an id or by its owner: no plan is to
-- hang on it. Hence CASE, which the planner expects to hold for half of all rows,
-- where it would expect OR and AND to hold for next to none.
CREATE FUNCTION recall.reached(resource_id text, reach text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN reach[1] <> '' AND resource_id <> reach[1] THEN false
    ELSE starts_with(resource_id, reach[2])
END;

-- +goose Down
DROP FUNCTION recall.reached(text, text[]);
