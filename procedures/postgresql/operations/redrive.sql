-- redrive: retry one dead letter, with its attempts reset to 0.
-- Arguments:   p_id (the message)
-- Returns:     affected: 1; 0 when the message is not a dead letter
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     SELECT mq.redrive(17);
CREATE OR REPLACE FUNCTION mq.redrive(p_id bigint, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_type text;
BEGIN
    IF p_id IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'id: must not be NULL; redrive_all redrives all of a queue');
    END IF;
    -- ORDER BY selects the primary key: see erase.
    DELETE FROM mq.dead WHERE ctid = ANY (ARRAY(SELECT ctid FROM mq.dead WHERE id = ANY (ARRAY[p_id]) ORDER BY id))
    RETURNING type INTO v_type;
    affected := FOUND::integer;
    IF FOUND THEN
        PERFORM mq_internal.put_back(mq_internal.policy(v_type), ARRAY[p_id], ARRAY[0::smallint]);
    END IF;
END
$$;
