-- reader_name: the name of a process that gave none: its application name, else its role, with its process number.
-- Arguments:   p_name (NULL: make one up)
-- Returns:     a name of at most 200 characters
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq.reader_name(NULL);

CREATE OR REPLACE FUNCTION mq.reader_name(
    p_name text
) RETURNS text
LANGUAGE sql
STABLE
AS $$
    -- A function of this kind is written into the query that calls it.
    SELECT coalesce(p_name, left(coalesce(nullif(current_setting('application_name'), ''), session_user), 180)
        || '/' || pg_backend_pid());
$$;
