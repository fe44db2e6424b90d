-- forget_reports: delete figures older than a day, and consumers that stopped an hour ago or are silent for a day.
-- Returns:     nothing; a call deletes at most 1,000 rows of each
-- Transaction: joins the caller's; skips rows that others have locked, and in a WAIT transaction before 5.0 all rows, which
--              it cannot skip: the next report in a NO WAIT transaction deletes more
CREATE OR ALTER PROCEDURE imq_forget_reports (p_now timestamp)
AS
DECLARE c_rows integer = 1000;
DECLARE v_at timestamp;
DECLARE v_rows integer = 0;
DECLARE v_skips smallint = 0;
BEGIN
    /*!5 v_skips = 1; */
    IF (v_skips = 0 AND RDB$GET_CONTEXT('SYSTEM', 'LOCK_TIMEOUT') <> '0') THEN
        EXIT;
    FOR SELECT t."MINUTE"
        FROM mq_report AS t
        WHERE t."MINUTE" < DATEADD(-24 HOUR TO :p_now)
        PLAN (t ORDER mq_report_pk)
        ORDER BY t."MINUTE", t.type, t.consumer
        /*!5 WITH LOCK SKIP LOCKED */
        INTO v_at AS CURSOR old
    DO
    BEGIN
        v_rows = v_rows + 1;
        IF (v_rows > c_rows) THEN
            LEAVE;
        DELETE FROM mq_report WHERE CURRENT OF old;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_at = NULL;
    END
    -- The table has about as many rows as there were consumers within a day.
    v_rows = 0;
    FOR SELECT c.reported_at
        FROM mq_consumer AS c
        WHERE c.reported_at < DATEADD(IIF(c.due_at IS NULL, -1, -24) HOUR TO :p_now)
        /*!5 WITH LOCK SKIP LOCKED */
        INTO v_at AS CURSOR gone
    DO
    BEGIN
        v_rows = v_rows + 1;
        IF (v_rows > c_rows) THEN
            LEAVE;
        DELETE FROM mq_consumer WHERE CURRENT OF gone;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_at = NULL;
    END
    -- Another transaction has changed it since this transaction's snapshot: a later report deletes it.
    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        v_at = NULL;
END
