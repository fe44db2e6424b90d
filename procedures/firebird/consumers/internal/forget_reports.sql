-- forget_reports: delete figures older than a day, and consumers that stopped an hour ago or are silent for a day.
-- Returns:     nothing; a call deletes at most 1,000 rows of each
-- Transaction: joins the caller's; skips rows that others have locked, and in a WAIT transaction all rows
--
-- Before Firebird 5 a WAIT transaction cannot skip locked rows: the next report in a NO WAIT transaction deletes more.
-- forget_reports.5.sql replaces it from 5.0 on.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_forget_reports (p_now timestamp)
AS
DECLARE v_at timestamp;
BEGIN
    IF (RDB$GET_CONTEXT('SYSTEM', 'LOCK_TIMEOUT') <> '0') THEN
        EXIT;
    FOR SELECT t."MINUTE"
        FROM mq_report AS t
        WHERE t."MINUTE" < DATEADD(-24 HOUR TO :p_now)
        PLAN (t ORDER mq_report_pk)
        ORDER BY t."MINUTE", t.type, t.reader
        ROWS 1000
        INTO v_at AS CURSOR old
    DO
    BEGIN
        DELETE FROM mq_report WHERE CURRENT OF old;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_at = NULL;
    END
    -- The table has about as many rows as there were consumers within a day.
    FOR SELECT c.reported_at
        FROM mq_consumer AS c
        WHERE c.reported_at < DATEADD(IIF(c.due_at IS NULL, -1, -24) HOUR TO :p_now)
        ROWS 1000
        INTO v_at AS CURSOR gone
    DO
    BEGIN
        DELETE FROM mq_consumer WHERE CURRENT OF gone;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_at = NULL;
    END
END^
SET TERM ; ^
