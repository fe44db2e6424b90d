-- lock_batch: lock the row of a batch until the transaction ends.
-- Arguments:   p_batch_key
-- Returns:     found: 1, or 0 when the batch was lost
-- Errors:      the engine's lock conflict when another transaction keeps the row for longer than two seconds
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_lock_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2') RETURNING_VALUES v_found;
--
-- Whoever changes what a batch holds has its row. A heartbeat or another message's end is over in a moment, and in a NO WAIT
-- transaction trying again is the only way to wait for it.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_lock_batch (
    p_batch_key mq_argument
)
RETURNS (
    found integer
)
AS
DECLARE c_seconds integer = 2;
DECLARE v_until timestamp;
DECLARE v_tries integer = 0;
DECLARE v_seen integer;
BEGIN
    WHILE (found IS NULL) DO
    BEGIN
        UPDATE mq_batch SET lease_seconds = lease_seconds WHERE batch_key = :p_batch_key;
        found = ROW_COUNT;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            v_until = COALESCE(v_until, DATEADD(c_seconds SECOND TO mq_utc_now()));
            IF (mq_utc_now() NOT BETWEEN DATEADD(-c_seconds SECOND TO v_until) AND v_until) THEN
                EXCEPTION;
            v_tries = v_tries + 1;
            -- Something that takes longer than another try: whoever has the row needs the processor too.
            IF (v_tries > 200) THEN
                IN AUTONOMOUS TRANSACTION DO
                    SELECT COUNT(*) FROM mq_batch WHERE batch_key = :p_batch_key INTO v_seen;
        END
    END
END^

SET TERM ; ^
