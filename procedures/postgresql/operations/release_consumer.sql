-- release_consumer: release all messages that a consumer holds, in all queues, as release_batch does for each claim.
-- Arguments:   p_consumer (1 to 200 characters: the name that it passes when it claims)
-- Returns:     affected: messages released; 0 when the name holds none
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's; skips claims that another call is finishing or extending
-- Example:     SELECT mq.release_consumer('worker-7');
CREATE OR REPLACE FUNCTION mq.release_consumer(p_consumer text, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_batch record;
BEGIN
    PERFORM mq_internal.require_name('consumer', p_consumer, false);
    affected := 0;
    FOR v_batch IN
        -- This reads every claim of the database: there is a row per claim, not per message.
        SELECT batch_key, type, ids, attempts FROM mq.batch WHERE consumer = p_consumer FOR UPDATE SKIP LOCKED
    LOOP
        CONTINUE WHEN mq_internal.is_held(v_batch.ids);
        DELETE FROM mq.batch WHERE batch_key = v_batch.batch_key;
        PERFORM mq_internal.put_back(mq_internal.policy(v_batch.type), v_batch.ids,
            ARRAY(SELECT (unnest(v_batch.attempts) - 1)::smallint));
        affected := affected + cardinality(v_batch.ids);
    END LOOP;
END
$$;
