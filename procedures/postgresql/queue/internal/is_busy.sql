-- is_busy: whether a group is blocked: it has no free place, or its first message waits for a retry or a token.
-- Arguments:   p_queue (the policy), p_group_key ('' or NULL for none)
-- Returns:     true or false

CREATE OR REPLACE FUNCTION mq_internal.is_busy(
    p_queue mq.queue,
    p_group_key text
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_group record;
BEGIN
    IF p_queue.ordered THEN
        RETURN EXISTS (
            SELECT FROM mq.group_lock AS l WHERE l.type = p_queue.type AND l.group_key = coalesce(p_group_key, '')
        );
    END IF;
    SELECT count(*) AS locks, count(d.id) AS waiting INTO v_group
    FROM mq.group_lock AS l
    -- ORDER BY id selects the right index: see erase.
    LEFT JOIN LATERAL (SELECT id FROM mq.delayed WHERE id = ANY (ARRAY[l.id]) ORDER BY id) AS d ON true
    WHERE l.type = p_queue.type AND l.group_key = coalesce(p_group_key, '');
    RETURN v_group.waiting > 0 OR p_queue.group_max_active > 0 AND v_group.locks >= p_queue.group_max_active;
END
$$;
