-- next_due: when the next message of a schedule of a type is due.
-- Returns:     p_next_at; NULL: no schedule

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_next_due(
    IN p_type varchar(200) CHARACTER SET utf8mb4, OUT p_next_at datetime(6)
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    SELECT MIN(next_at) INTO p_next_at FROM mq_schedule FORCE INDEX (schedule_due) WHERE type = p_type;
END
