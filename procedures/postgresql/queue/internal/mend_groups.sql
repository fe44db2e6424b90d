-- mend_groups: let groups go on that are stuck, should there ever be any.
-- Arguments:   p_type
-- Returns:     how many, up to 1,000
-- Errors:      50001 wrong_isolation
-- Transaction: joins the caller's
-- Example:     SELECT mq.mend_groups('invoice');

CREATE OR REPLACE FUNCTION mq.mend_groups(
    p_type text
) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    v_groups text[];
BEGIN
    IF NOT (mq.policy(p_type)).grouped THEN
        RETURN 0;
    END IF;
    PERFORM mq.require_read_committed();
    v_groups := ARRAY(SELECT * FROM mq.stuck_groups(p_type, 1000));
    -- Of those that go on meanwhile none is harmed: a lock row of a head that is at work stays.
    DELETE FROM mq.group_lock AS l
    WHERE l.type = p_type AND l.group_key = ANY (v_groups)
        AND NOT EXISTS (SELECT FROM mq.batch AS b WHERE b.type = p_type AND l.id = ANY (b.ids))
        AND NOT EXISTS (SELECT FROM mq.delayed AS d WHERE d.id = l.id);
    PERFORM mq.issue_tickets(p_type, v_groups);
    RETURN cardinality(v_groups);
END
$$;
