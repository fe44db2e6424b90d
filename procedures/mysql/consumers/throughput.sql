-- throughput: what consumers report per minute and type: messages sent, completed, failed and dead.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_since (UTC, a time in the first minute; NULL: an hour ago;
--              reports are kept for 24 hours)
-- Returns:     type, minute_at, sent (messages sent in this minute that have been claimed), completed, failed (attempts,
--              including those that made a dead letter), dead, waited_ms (from sending to the first attempt), busy_ms (in
--              handlers); no row for a minute without figures; a sum ends at 10^18
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_throughput('email', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_throughput(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_since datetime(6)
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    -- From the start of the minute.
    DECLARE v_since datetime(6)
        DEFAULT DATE_FORMAT(COALESCE(p_since, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR), '%Y-%m-%d %H:%i:00');
    CALL imq_require_name('type', p_type, 1);
    -- The reports of many consumers may add up to more than a bigint.
    SELECT t.type, t.minute AS minute_at, CAST(LEAST(SUM(t.sent), 1000000000000000000) AS SIGNED) AS sent, CAST(LEAST(SUM(t.completed), 1000000000000000000) AS SIGNED) AS completed,
        CAST(LEAST(SUM(t.failed), 1000000000000000000) AS SIGNED) AS failed, CAST(LEAST(SUM(t.dead), 1000000000000000000) AS SIGNED) AS dead,
        CAST(LEAST(SUM(t.waited_ms), 1000000000000000000) AS SIGNED) AS waited_ms, CAST(LEAST(SUM(t.busy_ms), 1000000000000000000) AS SIGNED) AS busy_ms
    FROM mq_report AS t FORCE INDEX (PRIMARY)
    WHERE t.minute >= v_since AND (p_type IS NULL OR t.type = p_type)
    GROUP BY t.type, t.minute
    ORDER BY t.type ASC, t.minute;
END
