-- is_busy: whether a group is blocked: it has no free place, or its first message waits for a retry or a token.
CREATE OR REPLACE FUNCTION mq_internal.is_busy(p_queue mq.queue, p_group_key text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_group record;
BEGIN
    IF p_queue.ordered THEN
        RETURN EXISTS (SELECT FROM mq.group_lock WHERE type = p_queue.type AND group_key = p_group_key);
    END IF;
    SELECT count(*) AS locks, count(d.id) AS waiting INTO v_group
    FROM mq.group_lock AS l
    -- ORDER BY id selects the right index: see erase.
    LEFT JOIN LATERAL (SELECT id FROM mq.delayed WHERE id = ANY (ARRAY[l.id]) ORDER BY id) AS d ON true
    WHERE l.type = p_queue.type AND l.group_key = p_group_key;
    RETURN v_group.waiting > 0 OR EXISTS (
        SELECT FROM mq_internal.group_limits(p_queue, p_group_key) AS o WHERE o.places > 0 AND v_group.locks >= o.places
    );
END
$$;
