-- cancel: delete one new or dead message, or cancel the attempt of an active one.
-- Arguments:   p_id (the message)
-- Returns:     affected (1; 0 when nothing changed), state (before the call: N or E: it is deleted; A: it is marked, and deleted
--              when its attempt ends; C: archived; N or E with affected 0: another transaction is claiming or changing
--              it; NULL: there is no such message)
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's; never waits for a claim; waits for a call that is ending the attempt
-- Example:     SELECT * FROM mq.cancel(17);
CREATE OR REPLACE FUNCTION mq.cancel(p_id bigint, OUT affected bigint, OUT state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
BEGIN
    IF p_id IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    SELECT c.affected, c.state INTO affected, state FROM mq_internal.cancel_one(p_id) AS c;
END
$$;
