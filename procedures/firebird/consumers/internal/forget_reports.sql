-- forget_reports: delete what reports say of minutes more than a day ago, consumers that stopped more than an hour ago, and
--              those that have been silent for a day; at most 1,000 rows of each.
-- Arguments:   p_now
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; skips rows that others have locked, and in a transaction that waits for locks over all
-- Example:     EXECUTE PROCEDURE mq_forget_reports(mq_utc_now());
--
-- Before Firebird 5 a transaction that waits cannot pass over a lock: the next report in one that does not wait deletes the more.
-- forget_reports.5.sql is the body for later versions.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_forget_reports (
    p_now timestamp
)
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
    -- As many rows as there were consumers within a day.
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
