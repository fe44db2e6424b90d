-- tend_groups: delete buckets of groups that are full again, and mend groups for some seconds after a change of limits.
-- Arguments:   p_queue (the policy, with limits by group)
-- Returns:     nothing
-- Errors:      50001 wrong_isolation
-- Transaction: joins the caller's; passes over buckets that another transaction has locked
-- Example:     SELECT mq.tend_groups(mq.policy('invoice'));
--
-- The first claim of each second calls this.

CREATE OR REPLACE FUNCTION mq.tend_groups(
    p_queue mq.queue
) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    c_buckets CONSTANT integer := 100;
    -- Claims that have begun with the old limits have committed by then.
    c_mend CONSTANT interval := '10 seconds';
    v_now timestamptz := clock_timestamp();
BEGIN
    IF v_now BETWEEN p_queue.changed_at AND p_queue.changed_at + c_mend THEN
        PERFORM mq.mend_groups(p_queue.type);
    END IF;
    DELETE FROM mq.bucket
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM mq.bucket
        WHERE type = p_queue.type AND full_at <= v_now
        ORDER BY type, full_at
        LIMIT c_buckets
        FOR UPDATE SKIP LOCKED
    ));
END
$$;
