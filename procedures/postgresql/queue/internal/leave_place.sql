-- leave_place: remove a message of state N from mq.ready or mq.delayed, if its run_at is earlier than p_before.
-- Arguments: p_run_at (the message's own; in a grouped queue it is compared with p_before if the message is due)
-- Returns: attempts (NULL: nothing was removed, or another transaction is claiming the message), error of the last
--     attempt, due_at (its time there; NULL: that of the message)
-- Transaction: never waits
CREATE OR REPLACE FUNCTION mq_internal.leave_place(
    p_queue mq.queue, p_id bigint, p_group_key text, p_before timestamptz, p_run_at timestamptz, OUT attempts smallint,
    OUT error text, OUT due_at timestamptz
)
LANGUAGE plpgsql AS $$
DECLARE
    v_rows tid[];
BEGIN
    IF p_queue.grouped THEN
        DELETE FROM mq.grouped AS g
        WHERE g.ctid = ANY (ARRAY(
            SELECT o.ctid FROM mq.grouped AS o
            WHERE o.type = p_queue.type AND o.group_key = p_group_key AND o.id = p_id AND p_run_at < p_before
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING g.attempts INTO attempts;
        IF FOUND THEN
            -- Its tickets.
            v_rows := mq_internal.lock_places(p_queue.type, ARRAY[p_id], 'infinity');
            DELETE FROM mq.ready AS r WHERE r.ctid = ANY (v_rows);
            RETURN;
        END IF;
    ELSE
        v_rows := mq_internal.lock_places(p_queue.type, ARRAY[p_id], p_before);
        DELETE FROM mq.ready AS r WHERE r.ctid = ANY (v_rows) RETURNING r.attempts, r.run_at INTO attempts, due_at;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    DELETE FROM mq.delayed AS d
    WHERE d.ctid = ANY (ARRAY(
        SELECT o.ctid FROM mq.delayed AS o
        WHERE o.id = ANY (ARRAY[p_id]) AND o.run_at < p_before ORDER BY o.id FOR UPDATE SKIP LOCKED
    ))
    RETURNING d.attempts, d.error, d.run_at INTO attempts, error, due_at;
END
$$;
