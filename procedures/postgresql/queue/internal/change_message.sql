-- change_message: replace or postpone a live message that has the dedup_key, if its state is N.
-- Arguments: p_on_conflict (replace or postpone)
-- Returns: 1; 0 when nothing was changed: its state is not N, another transaction is claiming it, or it is due later
--     already
-- Transaction: waits for another change of the message, never for a claim
--
-- The message is locked first: two calls for it run one after the other. A claimed or dead message is not locked: its
-- consumer would have to wait for the caller to finish it. The message is removed from its position as erase does it, in
-- the same order. Then it is inserted where a new message with this run_at goes. If its group was blocked by this message,
-- the group is unblocked.
CREATE OR REPLACE FUNCTION mq_internal.change_message(
    p_queue mq.queue, p_id bigint, p_on_conflict text, p_now timestamptz, p_run_at timestamptz, p_priority smallint,
    p_body text, p_headers text
) RETURNS smallint
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
DECLARE
    v_replace boolean := p_on_conflict = 'replace';
    v_message record;
    v_place record;
BEGIN
    IF p_queue.grouped THEN
        PERFORM mq_internal.require_read_committed();
    END IF;
    SELECT m.run_at, m.priority, coalesce(m.group_key, '') AS group_key INTO v_message
    FROM mq.message AS m
    WHERE m.id = p_id AND mq_internal.state_of(m.id) = 'N'
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    v_place := mq_internal.leave_place(p_queue, p_id, v_message.group_key, CASE WHEN v_replace THEN 'infinity' ELSE p_run_at END,
        v_message.run_at);
    IF v_place.attempts IS NULL THEN
        RETURN 0;
    END IF;

    IF v_replace THEN
        UPDATE mq.message SET run_at = p_run_at, priority = p_priority, body = p_body, headers = p_headers WHERE id = p_id;
        v_message.priority := p_priority;
        v_place.attempts := 0;
        v_place.error := NULL;
    ELSE
        UPDATE mq.message SET run_at = p_run_at WHERE id = p_id;
    END IF;
    IF p_run_at > p_now THEN
        INSERT INTO mq.delayed (id, run_at, priority, attempts, type, error)
        VALUES (p_id, p_run_at, v_message.priority, v_place.attempts, p_queue.type, v_place.error);
    ELSIF p_queue.grouped THEN
        INSERT INTO mq.grouped (id, attempts, type, group_key)
        VALUES (p_id, v_place.attempts, p_queue.type, v_message.group_key);
    ELSE
        INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
        VALUES (p_run_at, p_id, v_message.priority, v_place.attempts, p_queue.type, false,
            mq_internal.lane(p_queue.fair OR p_queue.grouped, v_message.priority, v_message.group_key));
    END IF;
    IF p_run_at < p_now OR p_queue.ring THEN
        PERFORM mq_internal.lower_mark(p_queue.type);
    END IF;
    IF p_queue.grouped THEN
        DELETE FROM mq.group_lock WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.group_lock WHERE id = ANY (ARRAY[p_id]) ORDER BY id));
        PERFORM mq_internal.issue_tickets(p_queue, ARRAY[v_message.group_key]);
    END IF;
    PERFORM mq_internal.wake(p_queue.type);
    RETURN 1;
END
$$;
