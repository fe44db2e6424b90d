-- list_schedules: list the schedules with their last and next times.
-- Arguments:   p_type (1 to 200 characters; NULL: all)
-- Returns:     name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at (NULL: the schedule has
--              stopped), last_at, last_id (NULL: nothing was sent yet); by name
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_list_schedules(NULL);

DROP PROCEDURE IF EXISTS mq_list_schedules;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_schedules(
    IN p_type longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    CALL mq_require_name('type', p_type, 1);
    SELECT s.name, s.type, s.cron, s.time_zone, s.body, s.headers, s.priority, s.group_key, s.overlap, s.next_at, s.last_at, s.last_id
    FROM mq_schedule AS s
    WHERE p_type IS NULL OR s.type = p_type
    ORDER BY s.name;
END//

DELIMITER ;
