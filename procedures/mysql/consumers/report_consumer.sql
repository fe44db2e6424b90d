-- report_consumer: report that a consumer is running, and what it did since its last report.
-- Arguments:   p_consumer, p_type (1 to 200 characters each), p_report (a flat JSON object) with the counts since the last
--              report (0 to 1,000,000,000; default 0) completed, failed, dead (default: the dead letters are counted here)
--              and sent (messages sent in the minute of sent_at whose first attempt this consumer began), the milliseconds
--              busy_ms (in handlers, to 10,000,000,000) and waited_ms (from sending to the first attempt, to
--              10,000,000,000,000), sent_at (a time with its zone; default now), next_seconds (until the next report, 0 to
--              3,600; 0: the consumer stops; default 60), handling (what it handles now, a text of up to 4,000 characters:
--              an object with id and since per line; default nothing)
-- Returns:     reported_at: the time of this report
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; no two consumers write the same row. It waits at most a second for a transaction
--              that reports under the same name, and then fails with error 1205
-- Example:     CALL mq_report_consumer('worker-1', 'email', '{"completed": 120, "failed": 3, "next_seconds": 10}');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_report_consumer(
    IN p_consumer longtext CHARACTER SET utf8mb4,
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_report longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_hours int DEFAULT 24;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_report, v_handling longtext CHARACTER SET utf8mb4;
    DECLARE v_completed, v_failed, v_dead, v_busy_ms, v_waited_ms, v_sent, v_next_seconds bigint;
    DECLARE v_sent_at datetime(6);
    DECLARE v_own tinyint;
    DECLARE v_wait int DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        SET SESSION innodb_lock_wait_timeout = v_wait;
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('consumer', p_consumer, 0);
    CALL imq_require_name('type', p_type, 0);
    CALL imq_read_options(p_report, 'report', '{"completed": [0, 1000000000], "failed": [0, 1000000000],
        "dead": [0, 1000000000], "busy_ms": [0, 10000000000], "waited_ms": [0, 10000000000000], "sent": [0, 1000000000],
        "sent_at": "time", "next_seconds": [0, 3600], "handling": "text"}', NULL, v_report);
    SELECT COALESCE(j.completed, 0), COALESCE(j.failed, 0), j.dead, COALESCE(j.busy_ms, 0), COALESCE(j.waited_ms, 0),
        COALESCE(j.sent, 0), LEAST(COALESCE(j.sent_at, v_now), v_now), COALESCE(j.next_seconds, 60), j.handling
    INTO v_completed, v_failed, v_dead, v_busy_ms, v_waited_ms, v_sent, v_sent_at, v_next_seconds, v_handling
    FROM JSON_TABLE(v_report, '$' COLUMNS (completed bigint PATH '$.completed', failed bigint PATH '$.failed',
        dead bigint PATH '$.dead', busy_ms bigint PATH '$.busy_ms', waited_ms bigint PATH '$.waited_ms',
        sent bigint PATH '$.sent', sent_at datetime(6) PATH '$.sent_at', next_seconds int PATH '$.next_seconds',
        handling longtext CHARACTER SET utf8mb4 PATH '$.handling')) AS j;
    IF CHAR_LENGTH(v_handling) > 4000 THEN
        CALL imq_raise_error('invalid_argument', 'handling: must be at most 4,000 characters');
    END IF;
    SET v_consumer = p_consumer;
    SET SESSION innodb_lock_wait_timeout = 1;
    CALL imq_begin_call(0, v_own);
    CALL imq_save_report(p_type, v_consumer, v_now, v_completed, v_failed, v_dead, v_busy_ms, v_waited_ms, v_next_seconds,
        v_handling, v_dead);
    IF v_completed > 0 OR v_failed > 0 OR v_dead > 0 OR v_busy_ms > 0 OR v_waited_ms > 0 THEN
        CALL imq_add_throughput(p_type, v_consumer, v_now, 0, v_completed, v_failed, v_dead, v_waited_ms, v_busy_ms);
    END IF;
    IF v_sent > 0 AND v_sent_at > v_now - INTERVAL c_hours HOUR THEN
        CALL imq_add_throughput(p_type, v_consumer, v_sent_at, v_sent, 0, 0, 0, 0, 0);
    END IF;
    CALL imq_end_call(v_own);
    SET SESSION innodb_lock_wait_timeout = v_wait;
    SELECT v_now AS reported_at;
END
