-- drop_queue: remove the settings of a queue, of its groups, and its marks.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     known (0: nothing had this name)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50004 queue_not_empty (the queue holds a new, active or dead message)
-- Transaction: joins the caller's, which must be READ COMMITTED; a message that is sent at the same time is kept
-- Example:     SELECT mq.drop_queue('email');
CREATE OR REPLACE FUNCTION mq.drop_queue(p_type text, OUT known smallint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_read_committed();
    known := mq_internal.is_known(p_type)::integer;
    PERFORM FROM mq.queue WHERE type = p_type FOR UPDATE;
    IF NOT mq_internal.is_empty(mq_internal.policy(p_type)) OR EXISTS (SELECT FROM mq.dead WHERE type = p_type) THEN
        PERFORM mq_internal.raise_error('queue_not_empty', format('%s holds messages; purge them first', p_type));
    END IF;
    -- A sender may have read the settings already. Claims take its message as after a change of the settings: see set_queue.
    DELETE FROM mq.queue_group WHERE type = p_type;
    DELETE FROM mq.limited WHERE type = p_type;
    DELETE FROM mq.bucket WHERE type = p_type;
    DELETE FROM mq.group_lock WHERE type = p_type;
    DELETE FROM mq.mark WHERE type = p_type;
    DELETE FROM mq.ring WHERE type = p_type;
    DELETE FROM mq.waiter WHERE type = p_type;
    DELETE FROM mq.queue WHERE type = p_type;
END
$$;
