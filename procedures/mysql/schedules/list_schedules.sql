-- list_schedules: list the schedules with their last and next times.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_body_length (characters of each body and its headers, 0 to
--              16,777,216; NULL: all)
-- Returns:     name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at (NULL: the schedule has
--              stopped), last_at, last_id (NULL: nothing was sent yet); by name
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_list_schedules(NULL, 100);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_schedules(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_body_length bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- The longest body.
    DECLARE v_length int DEFAULT COALESCE(p_body_length, 16777216);
    CALL imq_require_name('type', p_type, 1);
    CALL imq_require_range('body_length', p_body_length, 0, 16777216);
    SELECT s.name, s.type, s.cron, s.time_zone, LEFT(s.body, v_length) AS body, LEFT(s.headers, v_length) AS headers,
        s.priority, s.group_key, s.overlap, s.next_at, s.last_at, s.last_id
    FROM mq_schedule AS s
    WHERE p_type IS NULL OR s.type = p_type
    ORDER BY s.name;
END
