-- area_health: add the check of queue_health for schedules.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_area_health(INOUT p_checks longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    SELECT JSON_ARRAY_APPEND(p_checks, '$', JSON_ARRAY('stopped_schedules', IF(COUNT(*) > 0, 'bad', 'ok'), COUNT(*), 'schedules',
        COALESCE(CONCAT('the server does not know the time zone of ', GROUP_CONCAT(s.name ORDER BY s.name SEPARATOR ', '),
            '; load its time zones, then call set_schedule again'), 'none')))
    INTO p_checks
    FROM (SELECT name FROM mq_schedule WHERE next_at IS NULL ORDER BY name LIMIT 10) AS s;
END
