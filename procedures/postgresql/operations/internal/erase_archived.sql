-- erase_archived: delete archived messages of a queue, the oldest of each partition first.
-- Arguments: p_before (only messages completed earlier; NULL: any), p_size (the most messages to delete one by one)
-- Transaction: skips rows that another call is deleting; with p_before, empties partitions in which all are of this queue
--     and older
CREATE OR REPLACE FUNCTION mq_internal.erase_archived(p_type text, p_before timestamptz, p_size bigint) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    c_wholly CONSTANT text := 'SELECT (SELECT min(type) FROM %1$s) = $1 AND (SELECT max(type) FROM %1$s) = $1
        AND (SELECT max(completed_at) FROM %1$s WHERE type = $1) < $2';
    v_part regclass;
    v_wholly boolean;
    v_rows bigint;
    v_left bigint := p_size;
    v_count bigint := 0;
BEGIN
    -- One partition after the other: a ctid is valid only within its partition.
    FOR v_part IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'mq.archive'::regclass ORDER BY 1 LOOP
        EXECUTE format(c_wholly, v_part) INTO v_wholly USING p_type, p_before;
        IF v_wholly THEN
            BEGIN
                -- NOWAIT: while this waited, every consumer that completes messages would wait too.
                EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', v_part);
                EXECUTE format(c_wholly || ', (SELECT count(*) FROM %1$s)', v_part) INTO v_wholly, v_rows USING p_type, p_before;
                IF v_wholly THEN
                    EXECUTE format('TRUNCATE %s', v_part);
                    v_count := v_count + v_rows;
                    CONTINUE;
                END IF;
            EXCEPTION WHEN lock_not_available THEN
                NULL;  -- its rows are deleted one by one
            END;
        END IF;
        CONTINUE WHEN v_left = 0;
        EXECUTE format(
            'DELETE FROM %1$s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s WHERE type = $1 AND completed_at < $2 '
            'ORDER BY type, completed_at LIMIT $3 FOR UPDATE SKIP LOCKED))', v_part)
        USING p_type, coalesce(p_before, 'infinity'), v_left;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_left := v_left - v_rows;
        v_count := v_count + v_rows;
    END LOOP;
    RETURN v_count;
END
$$;
