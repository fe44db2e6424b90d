-- list_consumers: list the consumers with their start, their speed, and whether they still report.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_size (1 to 10,000; NULL: 10,000), p_after_type and
--              p_after_reader (the last row of the page before; NULL: from the first)
-- Returns:     one row per consumer and type, by type and reader: reader, type, status (working; silent: its report is
--              overdue; stopped), started_at, reported_at; since started_at: completed, failed, dead, busy_ms, waited_ms;
--              of the last full minute: rate_per_minute and load (the average number of running handlers)
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_list_consumers('email', NULL, NULL, NULL);

DROP PROCEDURE IF EXISTS mq_list_consumers;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_consumers(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_after_type longtext CHARACTER SET utf8mb4,
    IN p_after_reader longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
READS SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_minute datetime(6) DEFAULT DATE_FORMAT(v_now - INTERVAL 1 MINUTE, '%Y-%m-%d %H:%i:00');
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_reader varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_size int DEFAULT COALESCE(p_size, 10000);
    CALL mq_require_name('type', p_type, 1);
    CALL mq_require_range('size', p_size, 1, 10000);
    CALL mq_require_name('after_type', p_after_type, 1);
    CALL mq_require_name('after_reader', p_after_reader, 1);
    SET v_type = COALESCE(p_after_type, p_type, ''), v_reader = COALESCE(p_after_reader, '');
    SELECT c.reader, c.type,
        CASE WHEN c.due_at IS NULL THEN 'stopped' WHEN c.due_at < v_now THEN 'silent' ELSE 'working' END AS status,
        c.started_at, c.reported_at, c.completed, c.failed, c.dead, c.busy_ms, c.waited_ms,
        COALESCE(t.completed + t.failed, 0) + 0e0 AS rate_per_minute, COALESCE(t.busy_ms, 0) / 60000e0 AS `load`
    FROM mq_consumer AS c FORCE INDEX (PRIMARY)
    LEFT JOIN mq_report AS t FORCE INDEX (PRIMARY) ON t.minute = v_minute AND t.type = c.type AND t.reader = c.reader
    WHERE (p_type IS NULL OR c.type = p_type) AND c.type >= v_type AND (c.type > v_type OR c.reader > v_reader)
    ORDER BY c.type ASC, c.reader
    LIMIT v_size;
END//

DELIMITER ;
