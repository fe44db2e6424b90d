-- forget_reports: delete figures older than a day, and consumers that stopped an hour ago or are silent for a day.
-- Transaction: joins the caller's; skips rows that others have locked
-- This variant for Firebird 5.0 and later replaces forget_reports.sql.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_forget_reports (p_now timestamp)
AS
DECLARE v_at timestamp;
DECLARE v_rows integer = 0;
BEGIN
    FOR SELECT t."MINUTE"
        FROM mq_report AS t
        WHERE t."MINUTE" < DATEADD(-24 HOUR TO :p_now)
        PLAN (t ORDER mq_report_pk)
        ORDER BY t."MINUTE", t.type, t.reader
        WITH LOCK SKIP LOCKED
        INTO v_at AS CURSOR old
    DO
    BEGIN
        DELETE FROM mq_report WHERE CURRENT OF old;
        v_rows = v_rows + 1;
        IF (v_rows = 1000) THEN
            LEAVE;
    END
    -- The table has about as many rows as there were consumers within a day.
    v_rows = 0;
    FOR SELECT c.reported_at
        FROM mq_consumer AS c
        WHERE c.reported_at < DATEADD(IIF(c.due_at IS NULL, -1, -24) HOUR TO :p_now)
        WITH LOCK SKIP LOCKED
        INTO v_at AS CURSOR gone
    DO
    BEGIN
        DELETE FROM mq_consumer WHERE CURRENT OF gone;
        v_rows = v_rows + 1;
        IF (v_rows = 1000) THEN
            LEAVE;
    END
    -- Another transaction has changed it since this transaction's snapshot: a later report deletes it.
    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        v_at = NULL;
END^
SET TERM ; ^
