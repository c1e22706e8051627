-- Refuses a call with a message, for the branch of an expression that must not be
-- reached. The value that is refused is an argument since the planner, for its
-- estimates, calls what has only constants, reached or not.
CREATE OR REPLACE FUNCTION recall.refuse(message text, value text) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RAISE EXCEPTION '%', message USING ERRCODE = 'invalid_parameter_value';
END
$$;
