-- save_step: keep what a step of a message's handler has done; the same step again replaces its value.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_step (1 to 200 characters), p_value (up to
--              16 MiB; NULL: the step has no value)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument (10,000 steps a message), 50008 lease_lost, 50011 cancelled (nothing is
--              saved)
-- Transaction: joins the caller's: what the step did in this database commits together with its record. A call that finishes
--              the message waits for it; a lease of which less than half is left is extended
-- Example:     SELECT mq.save_step(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 'charge', '{"charge":"ch_1"}');
CREATE OR REPLACE FUNCTION mq.save_step(
    p_id bigint,
    p_batch_key uuid,
    p_step text,
    p_value text DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    c_most CONSTANT integer := 10000;
BEGIN
    PERFORM mq_internal.require_name('step', p_step, false);
    IF octet_length(p_value) > 16777216 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'value: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    PERFORM mq_internal.hold_message(p_id, p_batch_key);
    UPDATE mq.step AS s SET step_value = p_value, saved_at = clock_timestamp() WHERE s.id = p_id AND s.step = p_step;
    IF NOT FOUND THEN
        IF EXISTS (SELECT FROM mq.step AS s WHERE s.id = p_id OFFSET c_most - 1) THEN
            PERFORM mq_internal.raise_error('invalid_argument', 'step: a message has at most 10,000 steps');
        END IF;
        INSERT INTO mq.step AS s (id, step, step_value, saved_at) VALUES (p_id, p_step, p_value, clock_timestamp())
        ON CONFLICT (id, step) DO UPDATE SET step_value = excluded.step_value, saved_at = excluded.saved_at;
    END IF;
    -- Not at each step: a heartbeat waits for a transaction that has extended the lease.
    UPDATE mq.batch
    SET lease_until = clock_timestamp() + make_interval(secs => lease_seconds)
    WHERE batch_key = p_batch_key AND lease_until < clock_timestamp() + make_interval(secs => lease_seconds / 2.0);
    affected := 1;
END
$$;
