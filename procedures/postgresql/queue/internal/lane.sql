-- lane: the lane of a message: its priority as five digits, and its group. Lanes have the order of the priorities.
-- Arguments: p_laned (false: the queue is not fair and has no groups; the lane is NULL)
--
-- The planner puts the expression in the place of the call.
CREATE OR REPLACE FUNCTION mq_internal.lane(p_laned boolean, p_priority integer, p_group_key text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_laned THEN lpad((p_priority + 32768)::text, 5, '0') || coalesce(p_group_key, '') END
$$;
