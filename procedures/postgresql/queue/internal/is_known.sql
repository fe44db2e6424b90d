-- is_known: whether a queue has settings, messages in any state, or marks of messages that were claimed from it.
CREATE OR REPLACE FUNCTION mq_internal.is_known(p_type text) RETURNS boolean
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    RETURN EXISTS (SELECT FROM mq.queue WHERE type = p_type)
        OR EXISTS (SELECT FROM mq.ready WHERE type = p_type)
        OR EXISTS (SELECT FROM mq.mark WHERE type = p_type)
        OR EXISTS (SELECT FROM mq.delayed WHERE type = p_type)
        OR EXISTS (SELECT FROM mq.batch WHERE type = p_type)
        OR EXISTS (SELECT FROM mq.dead WHERE type = p_type)
        OR EXISTS (SELECT FROM mq.archive WHERE type = p_type);
END
$$;
