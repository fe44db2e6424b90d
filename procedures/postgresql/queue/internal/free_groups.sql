-- free_groups: unblock groups of a grouped queue after their messages were finished or dead-lettered.
CREATE OR REPLACE FUNCTION mq_internal.free_groups(p_queue mq.queue, p_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_groups text[];
BEGIN
    PERFORM mq_internal.require_read_committed();
    -- A claim that drops tickets of a blocked group holds its lock rows FOR SHARE until it commits. This DELETE waits for
    -- the claim, and the search for the group's next message follows.
    WITH freed AS (
        -- ORDER BY id selects the right index: see erase.
        DELETE FROM mq.group_lock
        WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.group_lock WHERE id = ANY (p_ids) ORDER BY id))
        RETURNING group_key
    )
    SELECT coalesce(array_agg(group_key) FILTER (WHERE p_queue.ordered),
        array_agg(DISTINCT group_key) FILTER (WHERE NOT p_queue.ordered)) INTO v_groups
    FROM freed;
    IF v_groups IS NOT NULL THEN
        PERFORM mq_internal.issue_tickets(p_queue, v_groups);
    END IF;
END
$$;
