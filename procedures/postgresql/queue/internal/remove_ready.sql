-- remove_ready: remove one ready message that is not claimed from mq.ready.
-- Returns: type, attempt (the number of the next attempt) and consumer (the caller); type is NULL when the message is not
--     ready, is being claimed, or its group is blocked in an ordered queue
-- Transaction: never waits
CREATE OR REPLACE FUNCTION mq_internal.remove_ready(p_id bigint, OUT type text, OUT attempt smallint, OUT consumer text)
LANGUAGE plpgsql AS $$
DECLARE
    v_message record;
    v_queue mq.queue;
    v_rows tid[];
BEGIN
    SELECT m.type, coalesce(m.group_key, '') AS group_key INTO v_message FROM mq.message AS m WHERE m.id = p_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_queue := mq_internal.policy(v_message.type);
    IF v_queue.ordered THEN
        PERFORM mq_internal.require_read_committed();
        IF NOT mq_internal.lock_group(v_message.type, v_message.group_key) THEN
            RETURN;
        END IF;
        DELETE FROM mq.grouped AS g
        WHERE g.type = v_message.type AND g.group_key = v_message.group_key AND g.id = p_id
            AND NOT EXISTS (
                SELECT FROM mq.group_lock AS l
                WHERE l.type = v_message.type AND l.group_key = v_message.group_key
            )
        RETURNING g.attempts + 1 INTO attempt;
    ELSIF v_queue.grouped THEN
        DELETE FROM mq.grouped AS g
        WHERE g.ctid = ANY (ARRAY(
            SELECT g2.ctid FROM mq.grouped AS g2
            WHERE g2.type = v_message.type AND g2.group_key = v_message.group_key AND g2.id = p_id
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING g.attempts + 1 INTO attempt;
    ELSE
        v_rows := mq_internal.lock_places(v_message.type, ARRAY[p_id], 'infinity');
        DELETE FROM mq.ready AS r WHERE r.ctid = ANY (v_rows) RETURNING r.attempts + 1 INTO attempt;
    END IF;
    IF NOT FOUND THEN
        -- A due message may still be delayed: the rollback of the take also undid its promotion.
        DELETE FROM mq.delayed AS d
        WHERE d.ctid = ANY (ARRAY(
            SELECT d2.ctid FROM mq.delayed AS d2
            WHERE d2.id = ANY (ARRAY[p_id]) AND d2.run_at <= clock_timestamp()
                AND NOT (v_queue.ordered AND EXISTS (
                    SELECT FROM mq.group_lock AS l
                    WHERE l.type = v_message.type AND l.group_key = v_message.group_key AND l.id <> p_id
                ))
            ORDER BY d2.id
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING d.attempts + 1 INTO attempt;
    END IF;
    IF FOUND THEN
        type := v_message.type;
        consumer := mq_internal.consumer_name(NULL);
    END IF;
END
$$;
