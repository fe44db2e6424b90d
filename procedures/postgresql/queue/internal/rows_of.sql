-- rows_of: the rows of mq.ready that belong to a message and are in the index by lane and id.
-- Arguments: p_lane (see lane; NULL: none)
--
-- The planner puts the query in the place of the call. The ranges and ORDER BY force that index, with any statistics.
CREATE OR REPLACE FUNCTION mq_internal.rows_of(p_type text, p_id bigint, p_lane text) RETURNS SETOF mq.ready
LANGUAGE sql STABLE AS $$
    (
        SELECT * FROM mq.ready
        WHERE type = p_type AND by_id IS NOT NULL AND lane IS NULL AND id BETWEEN p_id AND p_id
        ORDER BY type, lane, id
        OFFSET 0
    )
    UNION ALL
    (
        SELECT * FROM mq.ready
        WHERE type = p_type AND by_id IS NOT NULL AND lane = p_lane AND id BETWEEN p_id AND p_id
        ORDER BY type, lane, id
        OFFSET 0
    )
$$;
