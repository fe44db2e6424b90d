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
--              that reports under the same name, and then fails with lock_not_available
-- Example:     SELECT mq.report_consumer('worker-1', 'email', '{"completed": 120, "failed": 3, "next_seconds": 10}');
CREATE OR REPLACE FUNCTION mq.report_consumer(
    p_consumer text,
    p_type text,
    p_report text DEFAULT NULL,
    OUT reported_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET lock_timeout = '1s' AS $$
#variable_conflict use_column
DECLARE
    c_day CONSTANT interval := '24 hours';
    v_now timestamptz := clock_timestamp();
    v_dead bigint;
    v_report jsonb := mq_internal.read_options(p_report, 'report', '{"completed": [0, 1000000000],
        "failed": [0, 1000000000], "dead": [0, 1000000000], "busy_ms": [0, 10000000000], "waited_ms": [0, 10000000000000],
        "sent": [0, 1000000000], "sent_at": "time", "next_seconds": [0, 3600], "handling": "text"}');
    v_completed bigint := coalesce(v_report ->> 'completed', '0');
    v_failed bigint := coalesce(v_report ->> 'failed', '0');
    v_busy_ms bigint := coalesce(v_report ->> 'busy_ms', '0');
    v_waited_ms bigint := coalesce(v_report ->> 'waited_ms', '0');
    v_sent bigint := coalesce(v_report ->> 'sent', '0');
    v_sent_at timestamptz := least(coalesce((v_report ->> 'sent_at')::timestamptz, v_now), v_now);
BEGIN
    PERFORM mq_internal.require_name('consumer', p_consumer, false);
    PERFORM mq_internal.require_name('type', p_type, false);
    IF char_length(v_report ->> 'handling') > 4000 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'handling: must be at most 4,000 characters');
    END IF;
    v_dead := mq_internal.save_report(p_type, p_consumer, v_now, v_completed, v_failed, (v_report ->> 'dead')::bigint, v_busy_ms,
        v_waited_ms, coalesce((v_report ->> 'next_seconds')::bigint, 60), v_report ->> 'handling');
    IF v_completed > 0 OR v_failed > 0 OR v_dead > 0 OR v_busy_ms > 0 OR v_waited_ms > 0 THEN
        PERFORM mq_internal.add_throughput(p_type, p_consumer, v_now, 0, v_completed, v_failed, v_dead, v_waited_ms, v_busy_ms);
    END IF;
    IF v_sent > 0 AND v_sent_at > v_now - c_day THEN
        PERFORM mq_internal.add_throughput(p_type, p_consumer, v_sent_at, v_sent, 0, 0, 0, 0, 0);
    END IF;
    reported_at := v_now;
END
$$;
