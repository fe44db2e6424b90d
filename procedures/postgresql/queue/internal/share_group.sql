-- share_group: make calls that finish messages of a group wait until the caller commits: see pick_grouped.
-- Arguments:   p_type, p_group_key ('' for none), p_locks (the number of active messages that the caller sees)
-- Returns:     false when another transaction is finishing one of them
-- Transaction: joins the caller's; never waits

CREATE OR REPLACE FUNCTION mq_internal.share_group(
    p_type text,
    p_group_key text,
    p_locks bigint
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_rows integer;
BEGIN
    PERFORM FROM mq.group_lock WHERE type = p_type AND group_key = p_group_key FOR SHARE SKIP LOCKED;
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    RETURN v_rows >= p_locks;
END
$$;
