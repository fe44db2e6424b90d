-- policy: the settings of a type; the defaults when it has no settings.
-- Arguments:   p_type
-- Returns:     one row of mq.queue
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT * FROM mq.policy('email');

CREATE OR REPLACE FUNCTION mq.policy(
    p_type text
) RETURNS SETOF mq.queue
LANGUAGE sql
STABLE
AS $$
    -- The server inlines a function of this kind into FROM, where it costs no call.
    SELECT q.* FROM mq.queue AS q WHERE q.type = p_type
    UNION ALL
    SELECT p_type, 60, 10, 5, 3600, 'delete', false, true, 0, 0, 1, 0, 0, 1, false, NULL, false
    WHERE NOT EXISTS (SELECT FROM mq.queue AS q WHERE q.type = p_type);
$$;
