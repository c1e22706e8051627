-- The predicate that holds for metadata with all the pairs of `wanted`, each with
-- exactly that value and type: 2 is 2.0 and not "2", null is an explicit null.
-- NULL where nothing is wanted. Values are strings, numbers, booleans and null.
--
-- A path is lax by default: it unwraps arrays, and comparing different types gives
-- unknown. So each comparison asks for the type first; then it is true or false,
-- and NOT of it is right too. PostgreSQL takes the equalities as keys of
-- messages_content_idx.
CREATE OR REPLACE FUNCTION recall.metadata_predicate(wanted jsonb) RETURNS jsonpath
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT ('(' || string_agg(
        CASE
            WHEN jsonb_typeof(p.value) IN ('object', 'array') THEN recall.refuse(
                format('metadata.%s must be a string, a number, a boolean or null', p.key), p.value::text
            )
            ELSE format('($.%1$s.type() == "%2$s" && $.%1$s == %3$s)', to_jsonb(p.key), jsonb_typeof(p.value), p.value)
        END,
        ' && ' ORDER BY p.key COLLATE "C"
    ) || ')')::jsonpath
    FROM jsonb_each(wanted) AS p (key, value);
END;
