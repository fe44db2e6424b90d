-- free_groups: in a queue with groups, messages have left the hands of their consumer: their groups go on.
-- Arguments:   p_type, p_ids
-- Returns:     nothing
-- Errors:      50001 wrong_isolation
-- Transaction: joins the caller's
-- Example:     SELECT mq.free_groups('invoice', ARRAY[17]);

CREATE OR REPLACE FUNCTION mq.free_groups(
    p_type text,
    p_ids bigint[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_groups text[];
BEGIN
    PERFORM mq.require_read_committed();
    -- A claim that drops tickets of a busy group holds its lock row FOR SHARE until it commits, so this DELETE waits
    -- for it, and the search for the group's next message comes after.
    WITH freed AS (
        -- In order: see erase.
        DELETE FROM mq.group_lock
        WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.group_lock WHERE id = ANY (p_ids) ORDER BY id))
        RETURNING group_key
    )
    SELECT array_agg(group_key) INTO v_groups FROM freed;
    IF v_groups IS NOT NULL THEN
        PERFORM mq.issue_tickets(p_type, v_groups);
    END IF;
END
$$;
