-- count_polled: how many rows of a polling table are in a state, counted up to 10,000.
-- Arguments:   p_name, p_state (A, N or E)
-- Returns:     the count
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT mq.count_polled('orders', 'E');

CREATE OR REPLACE FUNCTION mq.count_polled(
    p_name text,
    p_state text
) RETURNS bigint
LANGUAGE sql
STABLE
AS $$
    SELECT count(*)
    FROM (SELECT FROM mq.polled_row AS r WHERE r.name = p_name AND r.state = p_state::"char" LIMIT 10000) AS r;
$$;
