-- unblock_groups: unblock groups that are stuck. There should be none.
CREATE OR REPLACE FUNCTION mq_internal.unblock_groups(p_type text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_queue mq.queue := mq_internal.policy(p_type);
    v_groups text[];
BEGIN
    IF NOT v_queue.grouped THEN
        RETURN;
    END IF;
    PERFORM mq_internal.require_read_committed();
    v_groups := ARRAY(SELECT * FROM mq_internal.stuck_groups(p_type, 1000));
    -- Groups that were unblocked in the meantime are not harmed: the lock row of an active first message stays.
    DELETE FROM mq.group_lock AS l
    WHERE l.type = p_type AND l.group_key = ANY (v_groups)
        AND NOT EXISTS (SELECT FROM mq.batch AS b WHERE b.type = p_type AND l.id = ANY (b.ids))
        AND NOT EXISTS (SELECT FROM mq.delayed AS d WHERE d.id = l.id)
        AND NOT (v_queue.dead_stops_group AND EXISTS (SELECT FROM mq.dead AS e WHERE e.id = l.id));
    PERFORM mq_internal.issue_tickets(v_queue, v_groups);
END
$$;
