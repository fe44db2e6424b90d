-- report_consumer: report that a consumer is running, and what it did since its last report.
-- Arguments:   p_reader, p_type (1 to 200 characters each); since the last report (NULL: 0): the counts (0 to
--              1,000,000,000) p_completed, p_failed, p_dead (NULL: the dead letters are counted here) and p_sent
--              (messages sent in the minute of p_sent_at whose first attempt this consumer began), and the milliseconds
--              p_busy_ms (in handlers, to 10,000,000,000) and p_waited_ms (from sending to the first attempt, to
--              10,000,000,000,000); p_sent_at (NULL: now);
--              p_next_seconds (until the next report, 0 to 3,600; 0: the consumer stops; NULL: 60)
-- Returns:     reported_at: the time of this report
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; no two consumers write the same row. It waits at most a second for a transaction
--              that reports under the same name, and then fails with lock_not_available
-- Example:     SELECT mq.report_consumer('worker-1', 'email', 120, 3, p_busy_ms => 9500, p_next_seconds => 10);
CREATE OR REPLACE FUNCTION mq.report_consumer(
    p_reader text, p_type text, p_completed bigint DEFAULT NULL, p_failed bigint DEFAULT NULL,
    p_dead bigint DEFAULT NULL, p_busy_ms bigint DEFAULT NULL, p_waited_ms bigint DEFAULT NULL,
    p_sent bigint DEFAULT NULL, p_sent_at timestamptz DEFAULT NULL, p_next_seconds bigint DEFAULT NULL,
    OUT reported_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET lock_timeout = '1s' AS $$
#variable_conflict use_column
DECLARE
    c_day CONSTANT interval := '24 hours';
    v_now timestamptz := clock_timestamp();
    v_dead bigint;
    v_sent_at timestamptz := least(coalesce(p_sent_at, v_now), v_now);
BEGIN
    PERFORM mq_internal.require_name('reader', p_reader, false);
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_range('completed', p_completed, 0, 1000000000);
    PERFORM mq_internal.require_range('failed', p_failed, 0, 1000000000);
    PERFORM mq_internal.require_range('dead', p_dead, 0, 1000000000);
    PERFORM mq_internal.require_range('busy_ms', p_busy_ms, 0, 10000000000);
    PERFORM mq_internal.require_range('waited_ms', p_waited_ms, 0, 10000000000000);
    PERFORM mq_internal.require_range('sent', p_sent, 0, 1000000000);
    PERFORM mq_internal.require_range('next_seconds', p_next_seconds, 0, 3600);
    v_dead := mq_internal.save_report(p_type, p_reader, v_now, coalesce(p_completed, 0), coalesce(p_failed, 0), p_dead,
        coalesce(p_busy_ms, 0), coalesce(p_waited_ms, 0), coalesce(p_next_seconds, 60));
    IF p_completed > 0 OR p_failed > 0 OR v_dead > 0 OR p_busy_ms > 0 OR p_waited_ms > 0 THEN
        PERFORM mq_internal.add_throughput(p_type, p_reader, v_now, 0, coalesce(p_completed, 0), coalesce(p_failed, 0), v_dead,
            coalesce(p_waited_ms, 0), coalesce(p_busy_ms, 0));
    END IF;
    IF p_sent > 0 AND v_sent_at > v_now - c_day THEN
        PERFORM mq_internal.add_throughput(p_type, p_reader, v_sent_at, p_sent, 0, 0, 0, 0, 0);
    END IF;
    reported_at := v_now;
END
$$;
