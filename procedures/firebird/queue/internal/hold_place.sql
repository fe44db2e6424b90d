-- hold_place: keep the place of a message in its group until this transaction ends; wait for a call that frees it.
CREATE OR ALTER PROCEDURE imq_hold_place (p_type mq_name, p_group_key mq_name, p_id bigint)
AS
DECLARE v_until timestamp;
DECLARE v_done integer;
BEGIN
    WHILE (v_done IS NULL) DO
    BEGIN
        UPDATE mq_group_lock SET id = id WHERE type = :p_type AND group_key = :p_group_key AND id = :p_id;
        v_done = ROW_COUNT;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            EXECUTE PROCEDURE imq_wait_to_repeat(v_until) RETURNING_VALUES v_until;
            IF (v_until IS NULL) THEN
                EXCEPTION;
        END
    END
END
