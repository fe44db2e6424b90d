-- count_polled: count the rows of a polling table that are in one state, up to 10,000.
-- Arguments: p_state (A claimed, N waiting or E dead)
CREATE OR REPLACE FUNCTION mq_internal.count_polled(p_name text, p_state text) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT count(*)
    FROM (SELECT FROM mq.polled_row AS r WHERE r.name = p_name AND r.state = p_state::"char" LIMIT 10000) AS r;
$$;
