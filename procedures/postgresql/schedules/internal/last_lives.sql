-- last_lives: whether the last message of a schedule prevents the next one.
-- Returns: true while the last message is new, and without overlap also while it is active; a dead letter does not
--     prevent the next one
CREATE OR REPLACE FUNCTION mq_internal.last_lives(p_schedule mq.schedule) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_message mq.message;
BEGIN
    SELECT * INTO v_message FROM mq.message WHERE id = p_schedule.last_id;
    IF NOT FOUND OR EXISTS (SELECT FROM mq.dead WHERE id = ANY (ARRAY[v_message.id]) ORDER BY id OFFSET 0) THEN
        RETURN false;
    END IF;
    -- A message without any of these rows is active.
    RETURN NOT p_schedule.overlap
        OR EXISTS (SELECT FROM mq.delayed WHERE id = ANY (ARRAY[v_message.id]) ORDER BY id OFFSET 0)
        OR EXISTS (SELECT FROM mq.grouped WHERE type = v_message.type AND group_key = coalesce(v_message.group_key, '') AND id = v_message.id)
        OR NOT (mq_internal.policy(v_message.type)).grouped AND (
            EXISTS (
                SELECT FROM mq.ready
                WHERE type = v_message.type AND priority = v_message.priority AND run_at = v_message.run_at AND id = v_message.id
            )
            OR EXISTS (SELECT FROM mq_internal.rows_of(v_message.type, v_message.id,
                mq_internal.lane(true, v_message.priority, v_message.group_key)))
        );
END
$$;
