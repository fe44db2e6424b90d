-- lock_message: lock a message until the caller's transaction ends.
-- Transaction: waits for a transaction that has saved a step, for two seconds in one that is NO WAIT
CREATE OR ALTER PROCEDURE imq_lock_message (p_id bigint)
AS
DECLARE v_done integer = 0;
DECLARE v_until timestamp;
BEGIN
    WHILE (v_done = 0) DO
    BEGIN
        SELECT id FROM mq_message WHERE id = :p_id FOR UPDATE WITH LOCK INTO p_id;
        v_done = 1;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            EXECUTE PROCEDURE imq_wait_to_repeat(v_until) RETURNING_VALUES v_until;
            IF (v_until IS NULL) THEN
                EXCEPTION;
        END
    END
END
