-- find_queues: list the names of queues that have settings, a schedule, or a message that is new or active.
-- Arguments:   p_prefix (how the names begin, 1 to 200 characters; NULL: all), p_after (only names after this one, 1 to 200
--              characters; NULL: from the first), p_size (1 to 10,000; NULL: 20)
-- Returns:     type: up to p_size names in the order of their bytes
-- Errors:      50002 invalid_argument
-- Transaction: reads only, a few index entries per queue, however many messages it has
-- Example:     SELECT type FROM mq.find_queues('mail.');
CREATE OR REPLACE FUNCTION mq.find_queues(
    p_prefix text DEFAULT NULL,
    p_after text DEFAULT NULL,
    p_size bigint DEFAULT NULL
) RETURNS TABLE (type text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
DECLARE
    v_prefix CONSTANT text := coalesce(p_prefix, '');
    v_last text := coalesce(p_after, '');
BEGIN
    PERFORM mq_internal.require_name('prefix', p_prefix, true);
    PERFORM mq_internal.require_name('after', p_after, true);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    -- From each name to the next one: a scan would read all messages.
    FOR i IN 1 .. coalesce(p_size, 20) LOOP
        SELECT min(t.type) INTO type
        FROM (
            (SELECT q.type FROM mq.queue AS q WHERE q.type > v_last AND q.type >= v_prefix ORDER BY q.type LIMIT 1)
            UNION ALL
            (SELECT r.type FROM mq.ready AS r WHERE r.type > v_last AND r.type >= v_prefix ORDER BY r.type LIMIT 1)
            UNION ALL
            (SELECT d.type FROM mq.delayed AS d WHERE d.type > v_last AND d.type >= v_prefix ORDER BY d.type LIMIT 1)
            UNION ALL
            (SELECT b.type FROM mq.batch AS b WHERE b.type > v_last AND b.type >= v_prefix ORDER BY b.type LIMIT 1)
            UNION ALL
            SELECT mq_internal.next_scheduled(v_last, v_prefix) COLLATE "C"
        ) AS t;
        EXIT WHEN type IS NULL OR NOT starts_with(type, v_prefix);
        RETURN NEXT;
        v_last := type;
    END LOOP;
END
$$;
