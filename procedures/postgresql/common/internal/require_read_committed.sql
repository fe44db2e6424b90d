-- require_read_committed: refuse to work on an ordered queue, or one with limits, from a snapshot.
-- Arguments:   none
-- Returns:     nothing
-- Errors:      50001 wrong_isolation
-- Transaction: must be READ COMMITTED, so that each statement sees what others have committed meanwhile
-- Example:     SELECT mq.require_read_committed();

CREATE OR REPLACE FUNCTION mq.require_read_committed(
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    -- The step that frees a group searches its next message after waiting for others; a snapshot would hide that message.
    -- A claim counts what is active after it has locked others out; a snapshot would hide what they have claimed.
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM mq.raise_error('wrong_isolation', format('an ordered queue, or one with limits, needs READ COMMITTED, not %s: '
            'SET TRANSACTION ISOLATION LEVEL READ COMMITTED', upper(current_setting('transaction_isolation'))));
    END IF;
END
$$;
