-- change_message: replace or postpone a live message that has the dedup_key, if its state is N.
-- Returns: 1; 0: its state is not N, another transaction is claiming it, or it is due later already
-- Transaction: waits for another change of the message, never for a claim
--
-- The message is locked first: two calls for it run one after the other. A claimed or dead message is not locked: its
-- consumer would have to wait for the caller to finish it. The message is removed from its position as erase does it, in
-- the same order. Then it is inserted where a new message with this run_at goes.
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
        DELETE FROM mq.step WHERE id = p_id;
        v_message.priority := p_priority;
        v_place.attempts := 0;
        v_place.error := NULL;
    ELSE
        UPDATE mq.message SET run_at = p_run_at WHERE id = p_id;
    END IF;
    PERFORM mq_internal.enter_place(p_queue, p_id, p_now, p_run_at, v_message.priority, v_message.group_key, v_place.attempts,
        v_place.error, true);
    RETURN 1;
END
$$;
