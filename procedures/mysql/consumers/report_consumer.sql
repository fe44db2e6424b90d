-- report_consumer: report that a consumer is running, and what it did since its last report.
-- Arguments:   p_reader, p_type (1 to 200 characters each); since the last report (NULL: 0): the counts (0 to
--              1,000,000,000) p_completed, p_failed, p_dead (NULL: the dead letters are counted here) and p_sent
--              (messages sent in the minute of p_sent_at whose first attempt this consumer began), and the milliseconds
--              p_busy_ms (in handlers, to 10,000,000,000) and p_waited_ms (from sending to the first attempt, to
--              10,000,000,000,000); p_sent_at (UTC; NULL: now);
--              p_next_seconds (until the next report, 0 to 3,600; 0: the consumer stops; NULL: 60)
-- Returns:     reported_at: the time of this report
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; no two consumers write the same row. It waits at most a second for a transaction
--              that reports under the same name, and then fails with error 1205
-- Example:     CALL mq_report_consumer('worker-1', 'email', 120, 3, NULL, 9500, NULL, NULL, NULL, 10);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_report_consumer(
    IN p_reader longtext CHARACTER SET utf8mb4, IN p_type longtext CHARACTER SET utf8mb4, IN p_completed bigint,
    IN p_failed bigint, IN p_dead bigint, IN p_busy_ms bigint, IN p_waited_ms bigint, IN p_sent bigint,
    IN p_sent_at datetime(6), IN p_next_seconds bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_hours int DEFAULT 24;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_reader varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_dead bigint;
    DECLARE v_sent_at datetime(6) DEFAULT LEAST(COALESCE(p_sent_at, v_now), v_now);
    DECLARE v_own tinyint;
    DECLARE v_wait int DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        SET SESSION innodb_lock_wait_timeout = v_wait;
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('reader', p_reader, 0);
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_range('completed', p_completed, 0, 1000000000);
    CALL imq_require_range('failed', p_failed, 0, 1000000000);
    CALL imq_require_range('dead', p_dead, 0, 1000000000);
    CALL imq_require_range('busy_ms', p_busy_ms, 0, 10000000000);
    CALL imq_require_range('waited_ms', p_waited_ms, 0, 10000000000000);
    CALL imq_require_range('sent', p_sent, 0, 1000000000);
    CALL imq_require_range('next_seconds', p_next_seconds, 0, 3600);
    SET v_reader = p_reader;
    SET SESSION innodb_lock_wait_timeout = 1;
    CALL imq_begin_call(0, v_own);
    CALL imq_save_report(p_type, v_reader, v_now, COALESCE(p_completed, 0), COALESCE(p_failed, 0), p_dead, COALESCE(p_busy_ms, 0),
        COALESCE(p_waited_ms, 0), COALESCE(p_next_seconds, 60), v_dead);
    IF p_completed > 0 OR p_failed > 0 OR v_dead > 0 OR p_busy_ms > 0 OR p_waited_ms > 0 THEN
        CALL imq_add_throughput(p_type, v_reader, v_now, 0, COALESCE(p_completed, 0), COALESCE(p_failed, 0), v_dead,
            COALESCE(p_waited_ms, 0), COALESCE(p_busy_ms, 0));
    END IF;
    IF p_sent > 0 AND v_sent_at > v_now - INTERVAL c_hours HOUR THEN
        CALL imq_add_throughput(p_type, v_reader, v_sent_at, p_sent, 0, 0, 0, 0, 0);
    END IF;
    CALL imq_end_call(v_own);
    SET SESSION innodb_lock_wait_timeout = v_wait;
    SELECT v_now AS reported_at;
END
