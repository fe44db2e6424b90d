-- open_polled: return a polling table and the SQL for it, for a caller with the rights that its claims need.
-- Arguments: p_name; or NULL and p_batch_key (of a claim)
-- Returns: polled (without its low-water mark) and shape (from polled_shape); NULL when the lease was lost
-- Transaction: must be READ COMMITTED: each statement must see what others have claimed meanwhile
CREATE OR REPLACE FUNCTION mq_internal.open_polled(p_name text, p_batch_key uuid, OUT polled mq.polled, OUT shape jsonb)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET jit = off AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM mq_internal.raise_error('wrong_isolation', format('polling tables need READ COMMITTED, not %s: '
            'SET TRANSACTION ISOLATION LEVEL READ COMMITTED', upper(current_setting('transaction_isolation'))));
    END IF;
    polled := mq_internal.polled_settings(p_name, p_batch_key);
    IF polled.name IS NOT NULL THEN
        shape := mq_internal.polled_shape(polled);
    ELSIF p_name IS NOT NULL THEN
        PERFORM mq_internal.raise_error('not_found', format('name: no table is adopted as %s', p_name));
    END IF;
END
$$;
