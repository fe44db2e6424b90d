-- rescue_expired: expired claims back to new, or dead when their attempts are used up; groups that are stuck (see queue_health) go on.
-- Arguments:   p_type (NULL: all)
-- Returns:     count of messages; at most 1,000 claims a type and call
-- Errors:      50001 wrong_isolation (ordered queues and those with limits by group), 50002 invalid_argument
-- Transaction: joins the caller's; passes over claims that are being finished or extended at this moment
-- Example:     SELECT mq.rescue_expired('email');

CREATE OR REPLACE FUNCTION mq.rescue_expired(
    p_type text DEFAULT NULL,
    OUT count bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    v_type text;
BEGIN
    PERFORM mq.require_name('type', p_type, true);
    IF p_type IS NOT NULL THEN
        count := mq.rescue(mq.policy(p_type), 1000);
        PERFORM mq.mend_groups(p_type);
        RETURN;
    END IF;
    count := 0;
    SELECT min(b.type) INTO v_type FROM mq.batch AS b;
    WHILE v_type IS NOT NULL LOOP
        count := count + mq.rescue(mq.policy(v_type), 1000);
        SELECT min(b.type) INTO v_type FROM mq.batch AS b WHERE b.type > v_type;
    END LOOP;
    FOR v_type IN SELECT q.type FROM mq.queue AS q WHERE q.grouped LOOP
        PERFORM mq.mend_groups(v_type);
    END LOOP;
END
$$;
