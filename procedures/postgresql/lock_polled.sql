-- lock_polled: lock the row of an adopted table: what claims from it, or changes what it is, takes turns.
-- Arguments:   p_name
-- Returns:     the row
-- Errors:      50001 wrong_isolation, 50005 not_found
-- Transaction: must be READ COMMITTED, so that each statement sees what others have claimed meanwhile
-- Example:     SELECT mq.lock_polled('orders');

CREATE OR REPLACE FUNCTION mq.lock_polled(
    p_name text
) RETURNS mq.polled
LANGUAGE plpgsql
AS $$
DECLARE
    v_polled mq.polled;
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM mq.raise_error('wrong_isolation', format('polling tables need READ COMMITTED, not %s: '
            'SET TRANSACTION ISOLATION LEVEL READ COMMITTED', upper(current_setting('transaction_isolation'))));
    END IF;
    SELECT * INTO v_polled FROM mq.polled WHERE name = p_name FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM mq.raise_error('not_found', format('name: no table is adopted as %s', p_name));
    END IF;
    RETURN v_polled;
END
$$;
