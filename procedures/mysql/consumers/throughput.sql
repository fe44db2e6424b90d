-- throughput: what consumers report per minute and type: messages sent, completed, failed and dead.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_since (UTC, a time in the first minute; NULL: an hour ago;
--              reports are kept for 24 hours), p_size (1 to 10,000; NULL: 10,000), p_after_minute and p_after_type (the
--              last row of the page before; NULL: from the first)
-- Returns:     one row per minute and type, by minute and type: type, minute, sent (messages sent in this minute that have been claimed), completed, failed (attempts,
--              including those that made a dead letter), dead, waited_ms (from sending to the first attempt), busy_ms (in
--              handlers), each at most 9,223,372,036,854,775,807; no row for a minute without figures
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_throughput('email', NULL, NULL, NULL, NULL);

DROP PROCEDURE IF EXISTS mq_throughput;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_throughput(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_since datetime(6),
    IN p_size int,
    IN p_after_minute datetime(6),
    IN p_after_type longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
READS SQL DATA
BEGIN
    -- From the start of the minute.
    DECLARE v_since datetime(6)
        DEFAULT DATE_FORMAT(COALESCE(p_since, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR), '%Y-%m-%d %H:%i:00');
    DECLARE c_most bigint DEFAULT 9223372036854775807;
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_size int DEFAULT COALESCE(p_size, 10000);
    CALL mq_require_name('type', p_type, 1);
    CALL mq_require_range('size', p_size, 1, 10000);
    CALL mq_require_name('after_type', p_after_type, 1);
    SET v_type = COALESCE(p_after_type, ''), v_since = GREATEST(v_since, COALESCE(p_after_minute, v_since));
    SELECT t.type, t.minute, CAST(LEAST(SUM(t.sent), c_most) AS SIGNED) AS sent,
        CAST(LEAST(SUM(t.completed), c_most) AS SIGNED) AS completed, CAST(LEAST(SUM(t.failed), c_most) AS SIGNED) AS failed,
        CAST(LEAST(SUM(t.dead), c_most) AS SIGNED) AS dead, CAST(LEAST(SUM(t.waited_ms), c_most) AS SIGNED) AS waited_ms,
        CAST(LEAST(SUM(t.busy_ms), c_most) AS SIGNED) AS busy_ms
    FROM mq_report AS t FORCE INDEX (PRIMARY)
    WHERE t.minute >= v_since AND (p_after_minute IS NULL OR t.minute > p_after_minute OR t.type > v_type)
        AND (p_type IS NULL OR t.type = p_type)
    GROUP BY t.minute, t.type
    ORDER BY t.minute, t.type ASC
    LIMIT v_size;
END//

DELIMITER ;
