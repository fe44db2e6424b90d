-- cancel_one: delete a message that is new or dead, mark one that is active; p_state: the one it had, or that prevents it.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_cancel_one(
    IN p_id bigint, OUT p_count bigint, OUT p_state char(1) CHARACTER SET ascii
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE i int DEFAULT 0;
    SET p_count = 0;
    -- More than one try only if another transaction ends the attempt at the same time.
    tries: WHILE p_count = 0 AND i < 3 DO
        SET i = i + 1, p_state = 'N';
        SELECT MAX(type) INTO v_type FROM mq_message WHERE id = p_id;
        IF v_type IS NULL THEN
            LEAVE tries;
        END IF;
        -- One after the other: so the state is the one from which it was deleted.
        CALL imq_erase(v_type, CONCAT('[[', p_id, ']]'), 'N', p_count);
        IF p_count = 0 THEN
            SET p_state = 'E';
            CALL imq_erase(v_type, CONCAT('[[', p_id, ']]'), 'E', p_count);
        END IF;
        IF p_count = 0 THEN
            CALL imq_state_of(p_id, p_state);
            IF COALESCE(p_state, '') <> 'A' THEN
                LEAVE tries;
            END IF;
            -- A call that ends the attempt locks this row too; a heartbeat does not. Either the other call sees the mark, or
            -- this one continues with the state that it leaves. The claim is read only after the lock.
            SELECT MAX(type) INTO v_type FROM mq_message WHERE id = p_id FOR UPDATE;
            SELECT COUNT(*) INTO p_count
            FROM mq_batch FORCE INDEX (batch_lease)
            WHERE type = v_type AND LOCATE(CAST(CONCAT('[', p_id, ',') AS binary), CAST(items AS binary)) > 0;
            IF p_count = 1 THEN
                UPDATE mq_message SET cancelled_at = UTC_TIMESTAMP(6) WHERE id = p_id AND cancelled_at IS NULL;
            END IF;
        END IF;
    END WHILE;
    IF p_count = 0 THEN
        CALL imq_state_of(p_id, p_state);
    END IF;
END
