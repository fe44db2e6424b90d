-- lock_places: lock the rows of mq.ready that belong to messages, and skip rows that another transaction has locked.
-- Arguments: p_ids (messages of that type; NULL: none), p_before (only rows with an earlier run_at)
-- Transaction: never waits
CREATE OR REPLACE FUNCTION mq_internal.lock_places(p_type text, p_ids bigint[], p_before timestamptz) RETURNS tid[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        -- Rows at the position where the message was sent.
        SELECT r.ctid FROM unnest(p_ids) AS u (id)
        CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m
        CROSS JOIN LATERAL (
            SELECT t.ctid FROM mq.ready AS t
            WHERE t.type = p_type AND t.priority = m.priority AND t.run_at = m.run_at AND t.id = m.id AND t.run_at < p_before
            FOR UPDATE SKIP LOCKED
        ) AS r
    ) || ARRAY(
        -- Rows elsewhere. The range and ORDER BY force the index on (type, lane, id) with any statistics.
        SELECT r.ctid FROM unnest(p_ids) AS u (id)
        CROSS JOIN LATERAL (
            SELECT t.ctid FROM mq.ready AS t
            WHERE t.type = p_type AND t.by_id IS NOT NULL AND t.lane IS NULL AND t.id BETWEEN u.id AND u.id AND t.run_at < p_before
            ORDER BY t.type, t.lane, t.id
            FOR UPDATE SKIP LOCKED
        ) AS r
    ) || ARRAY(
        -- In a fair queue.
        SELECT r.ctid FROM unnest(p_ids) AS u (id)
        CROSS JOIN LATERAL (
            SELECT mq_internal.lane(true, priority, group_key) AS lane FROM mq.message WHERE id = u.id OFFSET 0
        ) AS m
        CROSS JOIN LATERAL (
            SELECT t.ctid FROM mq.ready AS t
            WHERE t.type = p_type AND t.by_id IS NOT NULL AND t.lane = m.lane AND t.id BETWEEN u.id AND u.id AND t.run_at < p_before
            ORDER BY t.type, t.lane, t.id
            FOR UPDATE SKIP LOCKED
        ) AS r
    );
END
$$;
