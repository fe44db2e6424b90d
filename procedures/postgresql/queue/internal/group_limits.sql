-- group_limits: the limits and the weight of a group: its own, or else those of its queue. 0: no limit.
--
-- The planner puts the query in the place of the call.
CREATE OR REPLACE FUNCTION mq_internal.group_limits(p_queue mq.queue, p_group_key text) RETURNS TABLE (
    places integer, rate integer, rate_seconds integer, weight integer
)
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN (p_queue).ordered THEN 1 ELSE coalesce(g.max_active, (p_queue).group_max_active) END,
        coalesce(g.rate, (p_queue).group_rate), coalesce(g.rate_seconds, (p_queue).group_rate_seconds), coalesce(g.weight, 1)
    FROM (SELECT) AS one
    LEFT JOIN mq.queue_group AS g ON g.type = (p_queue).type AND g.group_key = p_group_key
$$;
