-- set_group: give one group of a queue its own share or its own limits, in the place of what was set for it before.
-- Arguments:   p_type, p_group_key (1 to 200 characters each), p_weight (messages per turn of a fair queue, 1 to 1,000;
--              NULL: 1), p_max_active and p_rate (0 to 1,000,000; 0: no limit; NULL: group_max_active and group_rate of the
--              queue), p_rate_seconds (1 to 86,400; NULL: the queue's); all NULL: the group has nothing of its own
-- Returns:     known (0: nothing had this name before)
-- Errors:      50001 wrong_isolation (with a limit), 50002 invalid_argument, 50004 queue_not_empty (the first limit per
--              group can be added only without new and active messages)
-- Transaction: joins the caller's; calls for one type wait for each other
-- Example:     SELECT mq.set_group('invoice', 'customer-7', p_weight => 3);
CREATE OR REPLACE FUNCTION mq.set_group(
    p_type text,
    p_group_key text,
    p_weight bigint DEFAULT NULL,
    p_max_active bigint DEFAULT NULL,
    p_rate bigint DEFAULT NULL,
    p_rate_seconds bigint DEFAULT NULL,
    OUT known smallint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_limit boolean := coalesce(p_max_active, 0) > 0 OR coalesce(p_rate, 0) > 0;
    v_queue mq.queue;
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_name('group_key', p_group_key, false);
    PERFORM mq_internal.require_range('weight', p_weight, 1, 1000);
    PERFORM mq_internal.require_range('max_active', p_max_active, 0, 1000000);
    PERFORM mq_internal.require_range('rate', p_rate, 0, 1000000);
    PERFORM mq_internal.require_range('rate_seconds', p_rate_seconds, 1, 86400);
    IF v_limit THEN
        PERFORM mq_internal.require_read_committed();
    END IF;
    known := mq_internal.is_known(p_type)::integer;
    v_queue := mq_internal.policy(p_type);
    INSERT INTO mq.queue SELECT v_queue.* ON CONFLICT DO NOTHING;
    SELECT * INTO v_queue FROM mq.queue WHERE type = p_type FOR NO KEY UPDATE;
    IF v_queue.ordered AND p_max_active > 1 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'max_active: must be 0 or 1 on an ordered queue');
    END IF;
    IF v_queue.ring AND v_limit THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'ring: cannot be combined with limits per group');
    END IF;
    IF v_limit AND NOT v_queue.grouped THEN
        -- As in set_queue.
        DELETE FROM mq.grouped WHERE type = p_type;
        IF NOT mq_internal.is_empty(v_queue) THEN
            PERFORM mq_internal.raise_error('queue_not_empty', format(
                'limits per group can be added or removed only while %s holds no new and no active message', p_type));
        END IF;
        UPDATE mq.queue SET grouped = true WHERE type = p_type RETURNING * INTO v_queue;
    END IF;
    DELETE FROM mq.queue_group WHERE type = p_type AND group_key = p_group_key;
    IF coalesce(p_weight, p_max_active, p_rate, p_rate_seconds) IS NOT NULL THEN
        INSERT INTO mq.queue_group (type, group_key, weight, max_active, rate, rate_seconds)
        VALUES (p_type, p_group_key, p_weight, p_max_active, p_rate, p_rate_seconds);
    END IF;
    IF v_queue.grouped THEN
        PERFORM mq_internal.rebuild_groups(v_queue);
    END IF;
    PERFORM mq_internal.wake(p_type);
END
$$;
