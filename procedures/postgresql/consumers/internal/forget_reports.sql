-- forget_reports: delete figures older than a day, and consumers that stopped an hour ago or are silent for a day.
-- Returns: nothing; a call deletes at most 1,000 rows of each
-- Transaction: skips rows that others have locked
CREATE OR REPLACE FUNCTION mq_internal.forget_reports(p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mq.report
    WHERE ctid = ANY (ARRAY(
        SELECT t.ctid FROM mq.report AS t
        WHERE t.minute < p_now - interval '24 hours'
        ORDER BY t.minute, t.type, t.reader
        LIMIT 1000
        FOR UPDATE SKIP LOCKED
    ));
    -- The table has about as many rows as there were consumers within a day.
    DELETE FROM mq.consumer
    WHERE ctid = ANY (ARRAY(
        SELECT c.ctid FROM mq.consumer AS c
        WHERE c.reported_at < p_now - CASE WHEN c.due_at IS NULL THEN interval '1 hour' ELSE interval '24 hours' END
        LIMIT 1000
        FOR UPDATE SKIP LOCKED
    ));
END
$$;
