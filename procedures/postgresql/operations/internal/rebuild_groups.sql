-- rebuild_groups: make groups claimable after a change of limits per group, as far as the new limits allow.
-- Transaction: never waits
--
-- A claim that began with the old limits may be dropping tickets at this moment. Because of changed_at, claims of the
-- next seconds search for stuck groups (see pick).
CREATE OR REPLACE FUNCTION mq_internal.rebuild_groups(p_queue mq.queue) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
BEGIN
    UPDATE mq.queue SET changed_at = v_now WHERE type = p_queue.type;
    -- First messages of groups that wait for a token of the old rate.
    UPDATE mq.delayed
    SET run_at = v_now
    WHERE ctid = ANY (ARRAY(
        SELECT d.ctid FROM mq.group_lock AS l
        JOIN mq.delayed AS d ON d.id = l.id
        WHERE l.type = p_queue.type AND d.run_at > v_now AND d.error IS NULL
        FOR UPDATE OF d SKIP LOCKED
    ));
    PERFORM mq_internal.issue_tickets(p_queue, ARRAY(SELECT DISTINCT group_key FROM mq.group_lock WHERE type = p_queue.type));
END
$$;
