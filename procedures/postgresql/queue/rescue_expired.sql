-- rescue_expired: make the messages of expired claims ready again, or dead-letter them when their attempts are used up;
--                 also unblock the stuck groups that queue_health reports.
-- Arguments:   p_type (NULL: all types)
-- Returns:     affected: messages made ready or dead-lettered; a call rescues at most 1,000 claims per type
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's; skips claims that another call is finishing or extending
-- Example:     SELECT mq.rescue_expired('email');
CREATE OR REPLACE FUNCTION mq.rescue_expired(p_type text DEFAULT NULL, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_type text;
BEGIN
    PERFORM mq_internal.require_name('type', p_type, true);
    IF p_type IS NOT NULL THEN
        affected := mq_internal.rescue(mq_internal.policy(p_type), 1000);
        PERFORM mq_internal.unblock_groups(p_type);
        RETURN;
    END IF;
    affected := 0;
    SELECT min(b.type) INTO v_type FROM mq.batch AS b;
    WHILE v_type IS NOT NULL LOOP
        affected := affected + mq_internal.rescue(mq_internal.policy(v_type), 1000);
        SELECT min(b.type) INTO v_type FROM mq.batch AS b WHERE b.type > v_type;
    END LOOP;
    FOR v_type IN SELECT q.type FROM mq.queue AS q WHERE q.grouped AND q.type <> '' LOOP
        PERFORM mq_internal.unblock_groups(v_type);
    END LOOP;
END
$$;
