-- cancel_key: cancel the live message that has a dedup_key, as cancel does.
-- Arguments:   p_type, p_dedup_key (1 to 200 characters each)
-- Returns:     affected, state (as from cancel; NULL: no live message has the key), id (the message that has the key, or had it)
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's; never waits for a claim; waits for a call that is ending the attempt
-- Example:     SELECT * FROM mq.cancel_key('reminder', 'order-17');
CREATE OR REPLACE FUNCTION mq.cancel_key(
    p_type text,
    p_dedup_key text,
    OUT affected bigint,
    OUT state text,
    OUT id bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_name('dedup_key', p_dedup_key, false);
    SELECT m.id INTO id FROM mq.message AS m WHERE m.type = p_type AND m.dedup_key = p_dedup_key;
    affected := 0;
    IF FOUND THEN
        SELECT c.affected, c.state INTO affected, state FROM mq_internal.cancel_one(id) AS c;
    END IF;
END
$$;
