-- report_consumer: report that a consumer is running, and what it did since its last report.
-- Arguments:   p_reader, p_type (1 to 200 characters each); since the last report (NULL: 0): the counts (0 to
--              1,000,000,000) p_completed, p_failed, p_dead (NULL: the dead letters are counted here) and p_sent
--              (messages sent in the minute of p_sent_at whose first attempt this consumer began), and the milliseconds
--              p_busy_ms (in handlers, to 10,000,000,000) and p_waited_ms (from sending to the first attempt, to
--              10,000,000,000,000); p_sent_at (UTC; NULL: now);
--              p_next_seconds (until the next report, 0 to 3,600; 0: the consumer stops; NULL: 60)
-- Returns:     reported_at: the time of this report
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; no two consumers write the same row. If two processes with the same name report at the
--              same time, one fails with a lock conflict, an update conflict or isc_unique_key_violation
-- Example:     SELECT reported_at FROM mq_report_consumer('worker-1', 'email', 120, 3, NULL, 9500);

CREATE OR ALTER PROCEDURE mq_report_consumer (
    p_reader mq_argument, p_type mq_argument, p_completed bigint = NULL, p_failed bigint = NULL, p_dead bigint = NULL,
    p_busy_ms bigint = NULL, p_waited_ms bigint = NULL, p_sent bigint = NULL, p_sent_at timestamp = NULL,
    p_next_seconds bigint = NULL
)
RETURNS (reported_at timestamp)
AS
DECLARE v_now timestamp; DECLARE v_sent_at timestamp;
DECLARE v_reader mq_name;
DECLARE v_dead bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('reader', p_reader, 0);
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_range('completed', p_completed, 0, 1000000000);
    EXECUTE PROCEDURE imq_require_range('failed', p_failed, 0, 1000000000);
    EXECUTE PROCEDURE imq_require_range('dead', p_dead, 0, 1000000000);
    EXECUTE PROCEDURE imq_require_range('busy_ms', p_busy_ms, 0, 10000000000);
    EXECUTE PROCEDURE imq_require_range('waited_ms', p_waited_ms, 0, 10000000000000);
    EXECUTE PROCEDURE imq_require_range('sent', p_sent, 0, 1000000000);
    EXECUTE PROCEDURE imq_require_range('next_seconds', p_next_seconds, 0, 3600);
    EXECUTE PROCEDURE imq_require_record_version;
    v_now = mq_utc_now();
    v_sent_at = MINVALUE(COALESCE(p_sent_at, v_now), v_now);
    v_reader = p_reader;
    EXECUTE PROCEDURE imq_save_report(p_type, v_reader, v_now, COALESCE(p_completed, 0), COALESCE(p_failed, 0), p_dead,
        COALESCE(p_busy_ms, 0), COALESCE(p_waited_ms, 0), COALESCE(p_next_seconds, 60))
    RETURNING_VALUES v_dead;
    IF (p_completed > 0 OR p_failed > 0 OR v_dead > 0 OR p_busy_ms > 0 OR p_waited_ms > 0) THEN
        EXECUTE PROCEDURE imq_add_throughput(p_type, v_reader, v_now, 0, COALESCE(p_completed, 0), COALESCE(p_failed, 0), v_dead,
            COALESCE(p_waited_ms, 0), COALESCE(p_busy_ms, 0));
    IF (p_sent > 0 AND v_sent_at > DATEADD(-24 HOUR TO v_now)) THEN
        EXECUTE PROCEDURE imq_add_throughput(p_type, v_reader, v_sent_at, p_sent, 0, 0, 0, 0, 0);
    reported_at = v_now;
    SUSPEND;
END
