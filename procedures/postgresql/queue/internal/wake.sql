-- wake: notify the consumers that wait for a type, if anybody has asked for it.
-- Arguments:   p_type
-- Returns:     nothing
-- Errors:      none
-- Transaction: the notification goes out when the caller commits
-- Example:     LISTEN on the channel 'mq_' || md5('email'), then SELECT mq.wake('email');

CREATE OR REPLACE FUNCTION mq.wake(
    p_type text
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    -- Every NOTIFY takes one lock for the whole server at commit, so nobody pays for it while all consumers work.
    IF EXISTS (SELECT FROM mq.waiter WHERE type = p_type AND wait_until > clock_timestamp()) THEN
        PERFORM pg_notify('mq_' || md5(p_type), p_type);
    END IF;
END
$$;
