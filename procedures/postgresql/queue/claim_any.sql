-- claim_any: claim up to p_size ready messages from the first type of a list that has any, under one new batch key.
-- Arguments:   p_types (1 to 1,000 types, one per line; a type that contains a line feed or begins with a double quote is
--              written as a JSON string), p_size (1 to 10,000; NULL: 1), p_consumer (NULL: the application name),
--              p_lease_seconds (1 to 86,400; NULL: the queue's)
-- Returns:     the messages, all of one type, as claim_batch returns them; no rows when claim_batch would return none of any
--              type
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits), 50002 invalid_argument
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.claim_any(E'email\nsms', 10, 'worker-1', 60);
CREATE OR REPLACE FUNCTION mq.claim_any(
    p_types text,
    p_size bigint DEFAULT NULL,
    p_consumer text DEFAULT NULL,
    p_lease_seconds bigint DEFAULT NULL
) RETURNS TABLE (
    id bigint, type text, body text, headers text, priority integer, group_key text, dedup_key text, attempt integer,
    created_at timestamptz, source text, batch_key uuid, lease_until timestamptz, max_attempts integer,
    run_at timestamptz, extra text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_type text;
BEGIN
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    PERFORM mq_internal.require_name('consumer', p_consumer, true);
    PERFORM mq_internal.require_range('lease_seconds', p_lease_seconds, 1, 86400);
    FOREACH v_type IN ARRAY mq_internal.read_types(p_types) LOOP
        IF (mq_internal.glance(v_type)).busy THEN
            RETURN QUERY SELECT * FROM mq.claim_batch(v_type, p_size, p_consumer, p_lease_seconds);
            EXIT WHEN FOUND;
        END IF;
    END LOOP;
END
$$;
