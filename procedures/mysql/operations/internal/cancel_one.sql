-- cancel_one: delete a message that is new or dead; p_state: the one it had, or the one that prevents it.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_cancel_one(
    IN p_id bigint, OUT p_count bigint, OUT p_state char(1) CHARACTER SET ascii
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    SET p_count = 0, p_state = 'N';
    SELECT MAX(type) INTO v_type FROM mq_message WHERE id = p_id;
    IF v_type IS NOT NULL THEN
        -- One after the other: so the state is the one from which it was deleted.
        CALL imq_erase(v_type, CONCAT('[[', p_id, ']]'), 'N', p_count);
        IF p_count = 0 THEN
            SET p_state = 'E';
            CALL imq_erase(v_type, CONCAT('[[', p_id, ']]'), 'E', p_count);
        END IF;
    END IF;
    IF p_count = 0 THEN
        CALL imq_state_of(p_id, p_state);
    END IF;
END
