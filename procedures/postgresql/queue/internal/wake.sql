-- wake: notify the consumers that wait for a type, if any consumer has asked for it and the queue's setting allows it.
-- Transaction: the notification goes out when the caller commits
CREATE OR REPLACE FUNCTION mq_internal.wake(p_type text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- Each NOTIFY takes a server-wide lock at commit. While all consumers are busy, no sender pays for it. A transaction
    -- with a NOTIFY cannot be prepared for two-phase commit; hence every step asks here.
    IF EXISTS (SELECT FROM mq.waiter WHERE type = p_type AND wait_until > clock_timestamp())
        AND (mq_internal.policy(p_type)).notify THEN
        PERFORM pg_notify('mq_' || md5(p_type), p_type);
    END IF;
END
$$;
