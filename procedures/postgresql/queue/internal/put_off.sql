-- put_off: delay the first message of a group until the group's next token.
-- Arguments:   p_queue (the policy, with a group_rate), p_group_key ('' for none), p_id and p_attempts (the message,
--              already removed from its group), p_full_at (when the bucket is full again after one more token is spent)
-- Transaction: joins the caller's, which holds the group's lock (lock_group)
--
-- The message waits like a failed message of an ordered queue: it is delayed and its row in mq.group_lock blocks the group
-- until promote.

CREATE OR REPLACE FUNCTION mq_internal.put_off(
    p_queue mq.queue,
    p_group_key text,
    p_id bigint,
    p_attempts smallint,
    p_full_at timestamptz
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO mq.group_lock (id, type, group_key) VALUES (p_id, p_queue.type, p_group_key);
    INSERT INTO mq.delayed (id, run_at, priority, attempts, type)
    SELECT id, p_full_at - make_interval(secs => p_queue.group_rate_seconds), priority, p_attempts, type
    FROM mq.message
    WHERE id = p_id;
    PERFORM mq_internal.wake(p_queue.type);
END
$$;
