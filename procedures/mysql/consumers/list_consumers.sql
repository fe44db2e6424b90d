-- list_consumers: list the consumers with their start, their speed, and whether they still report.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_size (1 to 10,000; NULL: 20)
-- Returns:     up to p_size rows, one per consumer and type, the silent ones first, then the working and the stopped
--              ones, by type and consumer: consumer, type, status (working; silent: its report is overdue; stopped), started_at, reported_at; since started_at: completed, failed, dead, busy_ms, waited_ms;
--              of the last full minute: rate_per_minute and busy (the average number of running handlers);
--              handling (the messages that it handled at its last report, a JSON object per line; NULL: none)
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_list_consumers('email', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_consumers(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_minute datetime(6) DEFAULT DATE_FORMAT(v_now - INTERVAL 1 MINUTE, '%Y-%m-%d %H:%i:00');
    DECLARE v_size int DEFAULT COALESCE(p_size, 20);
    CALL imq_require_name('type', p_type, 1);
    CALL imq_require_range('size', p_size, 1, 10000);
    SELECT c.consumer, c.type, ELT(c.place, 'silent', 'working', 'stopped') AS status, c.started_at, c.reported_at, c.completed, c.failed, c.dead, c.busy_ms, c.waited_ms,
        COALESCE(t.completed + 0e0 + t.failed, 0) AS rate_per_minute, COALESCE(t.busy_ms, 0) / 60000e0 AS busy, c.handling
    FROM (
        SELECT *, CASE WHEN due_at < v_now THEN 1 WHEN due_at IS NOT NULL THEN 2 ELSE 3 END AS place
        FROM mq_consumer
        WHERE p_type IS NULL OR type = p_type
        ORDER BY place, type, consumer LIMIT v_size
    ) AS c
    LEFT JOIN mq_report AS t FORCE INDEX (PRIMARY) ON t.minute = v_minute AND t.type = c.type AND t.consumer = c.consumer
    ORDER BY c.place, c.type, c.consumer;
END
