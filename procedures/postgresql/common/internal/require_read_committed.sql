-- require_read_committed: refuse a transaction whose statements do not see what others have committed since it began.
CREATE OR REPLACE FUNCTION mq_internal.require_read_committed() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- The step that frees a group waits for other transactions and then searches for the group's next message; a snapshot
    -- would hide that message. A claim takes a lock and then counts the active messages; a snapshot would hide what
    -- others have claimed.
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM mq_internal.raise_error('wrong_isolation', format('create_feed, and queues that are ordered or have limits, need READ COMMITTED, not %s: '
            'SET TRANSACTION ISOLATION LEVEL READ COMMITTED', upper(current_setting('transaction_isolation'))));
    END IF;
END
$$;
