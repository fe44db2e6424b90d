-- purge_archive: delete archived messages that were completed before a time.
-- Arguments:   p_before (messages completed earlier are deleted), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     count: messages deleted; repeat until it is 0
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; a monthly partition with only older messages is emptied with TRUNCATE if it is not in
--              use
-- Example:     SELECT mq.purge_archive(now() - interval '90 days', 10000);
CREATE OR REPLACE FUNCTION mq.purge_archive(
    p_before timestamptz,
    p_size bigint DEFAULT NULL,
    OUT count bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v_part regclass;
    v_wholly boolean;
    v_rows bigint;
BEGIN
    IF p_before IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'before: must not be NULL');
    END IF;
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    count := 0;
    FOR v_part IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'mq.archive'::regclass ORDER BY 1 LOOP
        EXECUTE format('SELECT max(completed_at) < $1 FROM %s', v_part) INTO v_wholly USING p_before;
        CONTINUE WHEN v_wholly IS NOT TRUE;
        BEGIN
            -- NOWAIT: while this waited, every consumer that completes messages would wait too.
            EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', v_part);
            EXECUTE format('SELECT max(completed_at) < $1, count(*) FROM %s', v_part) INTO v_wholly, v_rows USING p_before;
            IF v_wholly THEN
                EXECUTE format('TRUNCATE %s', v_part);
                count := count + v_rows;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            NULL;  -- its rows are deleted in chunks, below
        END;
    END LOOP;
    count := count + mq_internal.erase_archived(NULL, p_before, coalesce(p_size, 1000));
END
$$;
