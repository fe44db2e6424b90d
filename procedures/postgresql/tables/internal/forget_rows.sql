-- forget_rows: delete entries of rows that are done or gone.
CREATE OR REPLACE FUNCTION mq_internal.forget_rows(p_name text, p_pass text, p_ids bigint[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    v_count bigint;
BEGIN
    PERFORM mq_internal.polled_by_pass(p_name, p_pass, false);
    DELETE FROM mq.polled_row WHERE id = ANY (p_ids) AND name = p_name;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$$;
