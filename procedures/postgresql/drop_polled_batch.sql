-- drop_polled_batch: end a claim of rows: delete its batch and say what table it was of.
-- Arguments:   p_batch_key
-- Returns:     the adopted table; all NULL when the batch was lost
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's; calls for the same batch wait for each other
-- Example:     SELECT mq.drop_polled_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

CREATE OR REPLACE FUNCTION mq.drop_polled_batch(
    p_batch_key uuid
) RETURNS mq.polled
LANGUAGE plpgsql
AS $$
DECLARE
    v_polled mq.polled;
    v_name text;
BEGIN
    IF p_batch_key IS NULL THEN
        PERFORM mq.raise_error('invalid_argument', 'batch_key: must not be NULL');
    END IF;
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM mq.raise_error('wrong_isolation', format('polling tables need READ COMMITTED, not %s: '
            'SET TRANSACTION ISOLATION LEVEL READ COMMITTED', upper(current_setting('transaction_isolation'))));
    END IF;
    DELETE FROM mq.polled_batch WHERE batch_key = p_batch_key RETURNING name INTO v_name;
    SELECT * INTO v_polled FROM mq.polled WHERE name = v_name;
    RETURN v_polled;
END
$$;
