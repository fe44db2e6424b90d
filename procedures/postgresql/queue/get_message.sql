-- get_message: claim the first ready message, with the queue's lease.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     one message; no row when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits), 50002 invalid_argument
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.get_message('email');
CREATE OR REPLACE FUNCTION mq.get_message(p_type text) RETURNS TABLE (
    id bigint, type text, body text, headers text, priority integer, group_key text, dedup_key text, attempt integer,
    created_at timestamptz, source text, batch_key uuid, lease_until timestamptz, max_attempts integer,
    run_at timestamptz, extra text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM mq.claim_batch(p_type, 1);
END
$$;
