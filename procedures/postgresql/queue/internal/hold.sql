-- hold: stamp picked messages with a new batch key and a lease, and return them.
-- Arguments:   p_queue (the policy), p_ids and p_attempts (side by side), p_reader, p_lease_seconds (NULL: the policy's)
-- Returns:     the messages, in the order of p_ids
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT * FROM mq.hold(mq.policy('email'), ARRAY[17], ARRAY[1], 'worker-1', 60);

CREATE OR REPLACE FUNCTION mq.hold(
    p_queue mq.queue,
    p_ids bigint[],
    p_attempts smallint[],
    p_reader text,
    p_lease_seconds bigint
) RETURNS TABLE (
    id bigint,
    type text,
    body text,
    headers text,
    priority integer,
    group_key text,
    dedup_key text,
    attempt integer,
    created_at timestamptz,
    source text,
    batch_key uuid,
    lease_until timestamptz
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_seconds integer := coalesce(p_lease_seconds, p_queue.lease_seconds);
    v_until timestamptz := v_now + make_interval(secs => v_seconds);
    v_key uuid := gen_random_uuid();
BEGIN
    INSERT INTO mq.batch (batch_key, claimed_at, lease_until, lease_seconds, type, reader, ids, attempts)
    VALUES (v_key, v_now, v_until, v_seconds, p_queue.type, p_reader, p_ids, p_attempts);
    -- OFFSET 0 keeps the subquery: one search by the key per message. As a plain join it is planned as a walk over all
    -- messages whenever the statistics come from an empty queue.
    RETURN QUERY
        SELECT m.id, m.type, m.body, m.headers, m.priority::integer, m.group_key, m.dedup_key, u.attempt::integer,
            m.created_at, m.source, v_key, v_until
        FROM unnest(p_ids, p_attempts) WITH ORDINALITY AS u (id, attempt, n)
        CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m
        ORDER BY u.n;
END
$$;
