-- claim_batch: claim up to p_size ready messages of one type under one new batch key.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: the
--              queue's)
-- Returns:     the messages in order of priority, run_at, id; no rows when nothing is ready, no limit allows it or the queue is paused
-- Errors:      50001 wrong_isolation (ordered queues and those with limits), 50002 invalid_argument
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.claim_batch('email', 10, 'worker-1', 60);

CREATE OR REPLACE FUNCTION mq.claim_batch(
    p_type text,
    p_size bigint DEFAULT NULL,
    p_reader text DEFAULT NULL,
    p_lease_seconds bigint DEFAULT NULL
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
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
BEGIN
    PERFORM mq.require_name('type', p_type, false);
    PERFORM mq.require_range('size', p_size, 1, 10000);
    PERFORM mq.require_name('reader', p_reader, true);
    PERFORM mq.require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    RETURN QUERY SELECT * FROM mq.claim(mq.policy(p_type), coalesce(p_size, 1), mq.reader_name(p_reader), p_lease_seconds);
END
$$;
