-- ask_to_be_woken: ask senders to notify listeners of a type for the next 15 seconds.
-- Transaction: never waits; writes nothing while another session does the same
--
-- The lock is a row lock, not an advisory lock: any role that can connect could hold an advisory lock and prevent all
-- notifications.
CREATE OR REPLACE FUNCTION mq_internal.ask_to_be_woken(p_type text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_until timestamptz := clock_timestamp() + interval '15 seconds';
BEGIN
    PERFORM FROM mq.waiter WHERE type = p_type FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        UPDATE mq.waiter SET wait_until = v_until WHERE type = p_type;
    ELSIF NOT EXISTS (SELECT FROM mq.waiter WHERE type = p_type) AND mq_internal.lock_group(p_type, E'\nwaiter') THEN
        -- Without the lock, an INSERT would wait for another INSERT of the same type, which has no row to lock yet.
        INSERT INTO mq.waiter AS w (type, wait_until)
        VALUES (p_type, v_until)
        ON CONFLICT (type) DO UPDATE SET wait_until = excluded.wait_until;
    END IF;
END
$$;
