-- add_throughput: add to a consumer's figures of a type and a minute; the first call of a minute deletes old reports.
-- Arguments:   p_type, p_consumer, p_at (a time in that minute), p_sent, p_completed, p_failed, p_dead, p_waited_ms,
--              p_busy_ms

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_add_throughput(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_consumer varchar(200) CHARACTER SET utf8mb4, IN p_at datetime(6),
    IN p_sent bigint, IN p_completed bigint, IN p_failed bigint, IN p_dead bigint, IN p_waited_ms bigint,
    IN p_busy_ms bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_minute datetime(6) DEFAULT DATE_FORMAT(p_at, '%Y-%m-%d %H:%i:00');
    INSERT INTO mq_report (minute, type, consumer, sent, completed, failed, dead, waited_ms, busy_ms)
    VALUES (v_minute, p_type, p_consumer, p_sent, p_completed, p_failed, p_dead, p_waited_ms, p_busy_ms)
    ON DUPLICATE KEY UPDATE mq_report.sent = mq_report.sent + p_sent, mq_report.completed = mq_report.completed + p_completed,
        mq_report.failed = mq_report.failed + p_failed, mq_report.dead = mq_report.dead + p_dead,
        mq_report.waited_ms = mq_report.waited_ms + p_waited_ms, mq_report.busy_ms = mq_report.busy_ms + p_busy_ms;
    -- The server counts a changed row as two.
    IF ROW_COUNT() = 1 THEN
        CALL imq_forget_reports(UTC_TIMESTAMP(6));
    END IF;
END
