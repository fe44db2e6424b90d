-- erase_archived: delete archived messages, the oldest of each partition first.
-- Arguments: p_before (only messages completed earlier), p_size (the most messages to delete)
-- Transaction: skips rows that another call is deleting
CREATE OR REPLACE FUNCTION mq_internal.erase_archived(p_type text, p_before timestamptz, p_size bigint) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    v_part regclass;
    v_rows bigint;
    v_count bigint := 0;
BEGIN
    -- One partition after the other: a ctid is valid only within its partition.
    FOR v_part IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'mq.archive'::regclass ORDER BY 1 LOOP
        EXIT WHEN v_count >= p_size;
        EXECUTE format(
            'DELETE FROM %1$s WHERE ctid = ANY (ARRAY('
            'SELECT ctid FROM %1$s WHERE completed_at < $2 %2$s ORDER BY %3$s completed_at LIMIT $3 FOR UPDATE SKIP LOCKED))',
            v_part, CASE WHEN p_type IS NOT NULL THEN 'AND type = $1' END, CASE WHEN p_type IS NOT NULL THEN 'type,' END)
        USING p_type, p_before, p_size - v_count;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_count := v_count + v_rows;
    END LOOP;
    RETURN v_count;
END
$$;
