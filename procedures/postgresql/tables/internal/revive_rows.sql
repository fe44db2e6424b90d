-- revive_rows: make dead entries due again, with their attempts set back to 0.
CREATE OR REPLACE FUNCTION mq_internal.revive_rows(p_name text, p_pass text, p_ids bigint[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    v_count bigint;
BEGIN
    PERFORM mq_internal.polled_by_pass(p_name, p_pass, false);
    UPDATE mq.polled_row
    SET state = 'N', attempts = 0, run_at = clock_timestamp(), active = false
    WHERE id = ANY (p_ids) AND name = p_name AND state = 'E';
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$$;
