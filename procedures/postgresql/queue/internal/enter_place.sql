-- enter_place: insert a message of state N, which leave_place has removed, where a message with this run_at goes.
-- Arguments: p_group_key (empty: none), p_moved (true: if the message blocked its group, the group is unblocked; false: it
--     stays blocked until the message is due)
CREATE OR REPLACE FUNCTION mq_internal.enter_place(
    p_queue mq.queue, p_id bigint, p_now timestamptz, p_run_at timestamptz, p_priority smallint, p_group_key text,
    p_attempts smallint, p_error text, p_moved boolean
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_run_at > p_now THEN
        INSERT INTO mq.delayed (id, run_at, priority, attempts, type, error)
        VALUES (p_id, p_run_at, p_priority, p_attempts, p_queue.type, p_error);
    ELSIF p_queue.grouped THEN
        INSERT INTO mq.grouped (id, attempts, type, group_key)
        VALUES (p_id, p_attempts, p_queue.type, p_group_key);
    ELSE
        INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
        VALUES (p_run_at, p_id, p_priority, p_attempts, p_queue.type, false,
            mq_internal.lane(p_queue.fair OR p_queue.grouped, p_priority, p_group_key));
    END IF;
    IF p_run_at < p_now OR p_queue.ring THEN
        PERFORM mq_internal.lower_mark(p_queue.type);
    END IF;
    IF p_queue.grouped AND (p_moved OR p_run_at <= p_now) THEN
        -- ORDER BY id selects the right index: see erase.
        DELETE FROM mq.group_lock
        WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.group_lock WHERE id = ANY (ARRAY[p_id]) ORDER BY id));
        PERFORM mq_internal.issue_tickets(p_queue, ARRAY[p_group_key]);
    END IF;
    PERFORM mq_internal.wake(p_queue.type);
END
$$;
