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
-- Transaction: joins the caller's; no two consumers write the same row. If two processes with the same name report at the
--              same time, one fails with a lock conflict, an update conflict or isc_unique_key_violation
-- Example:     SELECT reported_at FROM mq_report_consumer('worker-1', 'email', '{"completed": 120, "failed": 3, "next_seconds": 10}');

CREATE OR ALTER PROCEDURE mq_report_consumer (
    p_consumer mq_argument,
    p_type mq_argument,
    p_report mq_text = NULL
)
RETURNS (reported_at timestamp)
AS
DECLARE v_now timestamp; DECLARE v_sent_at timestamp;
DECLARE v_consumer mq_name;
DECLARE v_completed bigint; DECLARE v_failed bigint; DECLARE v_dead bigint; DECLARE v_busy_ms bigint; DECLARE v_waited_ms bigint;
DECLARE v_sent bigint; DECLARE v_next_seconds bigint;
DECLARE v_option varchar(40) CHARACTER SET ASCII; DECLARE v_number bigint; DECLARE v_moment timestamp; DECLARE v_text mq_text;
DECLARE v_handling mq_text;
BEGIN
    EXECUTE PROCEDURE imq_require_name('consumer', p_consumer, 0);
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    FOR
        SELECT o.name, o.number, o.moment, o.text FROM imq_read_options(:p_report, 'report',
            ';completed:0:1000000000;failed:0:1000000000;dead:0:1000000000;'
            || 'busy_ms:0:10000000000;waited_ms:0:10000000000000;sent:0:1000000000;'
            || 'sent_at:time;next_seconds:0:3600;handling:text;') AS o
        INTO v_option, v_number, v_moment, v_text
    DO
    BEGIN
        v_completed = IIF(v_option = 'completed', v_number, v_completed);
        v_failed = IIF(v_option = 'failed', v_number, v_failed);
        v_dead = IIF(v_option = 'dead', v_number, v_dead);
        v_busy_ms = IIF(v_option = 'busy_ms', v_number, v_busy_ms);
        v_waited_ms = IIF(v_option = 'waited_ms', v_number, v_waited_ms);
        v_sent = IIF(v_option = 'sent', v_number, v_sent);
        v_sent_at = IIF(v_option = 'sent_at', v_moment, v_sent_at);
        v_next_seconds = IIF(v_option = 'next_seconds', v_number, v_next_seconds);
        v_handling = IIF(v_option = 'handling', v_text, v_handling);
    END
    IF (CHAR_LENGTH(v_handling) > 4000) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'handling: must be at most 4,000 characters');
    EXECUTE PROCEDURE imq_require_record_version;
    v_now = mq_utc_now();
    v_sent_at = MINVALUE(COALESCE(v_sent_at, v_now), v_now);
    v_consumer = p_consumer;
    EXECUTE PROCEDURE imq_save_report(p_type, v_consumer, v_now, COALESCE(v_completed, 0), COALESCE(v_failed, 0), v_dead,
        COALESCE(v_busy_ms, 0), COALESCE(v_waited_ms, 0), COALESCE(v_next_seconds, 60), v_handling)
    RETURNING_VALUES v_dead;
    IF (v_completed > 0 OR v_failed > 0 OR v_dead > 0 OR v_busy_ms > 0 OR v_waited_ms > 0) THEN
        EXECUTE PROCEDURE imq_add_throughput(p_type, v_consumer, v_now, 0, COALESCE(v_completed, 0), COALESCE(v_failed, 0), v_dead,
            COALESCE(v_waited_ms, 0), COALESCE(v_busy_ms, 0));
    IF (v_sent > 0 AND v_sent_at > DATEADD(-24 HOUR TO v_now)) THEN
        EXECUTE PROCEDURE imq_add_throughput(p_type, v_consumer, v_sent_at, v_sent, 0, 0, 0, 0, 0);
    reported_at = v_now;
    SUSPEND;
END
