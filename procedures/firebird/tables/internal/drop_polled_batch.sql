-- drop_polled_batch: end a claim of rows: whoever deletes its row owns what it held, which stands in mq_polled_row still.
-- Arguments:   p_batch_key
-- Returns:     name of the adopted table; NULL when the claim was lost
-- Errors:      the engine's lock conflict when another transaction keeps the row for longer than two seconds
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_drop_polled_batch(p_batch_key) RETURNING_VALUES v_name;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_drop_polled_batch (
    p_batch_key mq_argument
)
RETURNS (
    name mq_name
)
AS
DECLARE c_seconds integer = 2;
DECLARE v_until timestamp;
DECLARE v_seen integer;
DECLARE v_done integer = 0;
BEGIN
    WHILE (v_done = 0) DO
    BEGIN
        DELETE FROM mq_polled_batch WHERE batch_key = :p_batch_key RETURNING name INTO name;
        v_done = 1;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            v_until = COALESCE(v_until, DATEADD(c_seconds SECOND TO mq_utc_now()));
            IF (mq_utc_now() NOT BETWEEN DATEADD(-c_seconds SECOND TO v_until) AND v_until) THEN
                EXCEPTION;
            IN AUTONOMOUS TRANSACTION DO
                SELECT COUNT(*) FROM mq_polled_batch WHERE batch_key = :p_batch_key INTO v_seen;
        END
    END
END^

SET TERM ; ^
