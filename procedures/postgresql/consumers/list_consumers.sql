-- list_consumers: list the consumers with their start, their speed, and whether they still report.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_size (1 to 10,000; NULL: 20)
-- Returns:     up to p_size rows, one per consumer and type, the silent ones first, then the working and the stopped
--              ones, by type and consumer: consumer, type, status (working; silent: its report is overdue; stopped), started_at, reported_at; since started_at: completed, failed, dead, busy_ms, waited_ms;
--              of the last full minute: rate_per_minute and busy (the average number of running handlers);
--              handling (the messages that it handled at its last report, a JSON object per line; NULL: none)
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT consumer, status, rate_per_minute FROM mq.list_consumers('email');
CREATE OR REPLACE FUNCTION mq.list_consumers(
    p_type text DEFAULT NULL,
    p_size bigint DEFAULT NULL
) RETURNS TABLE (
    consumer text, type text, status text, started_at timestamptz, reported_at timestamptz, completed bigint,
    failed bigint, dead bigint, busy_ms bigint, waited_ms bigint, rate_per_minute double precision,
    busy double precision, handling text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_minute timestamptz := date_bin('1 minute', v_now - interval '1 minute', '2000-01-01 00:00:00+00');
BEGIN
    PERFORM mq_internal.require_name('type', p_type, true);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    RETURN QUERY
        SELECT c.consumer, c.type, (ARRAY['silent', 'working', 'stopped'])[c.place], c.started_at, c.reported_at, c.completed, c.failed, c.dead, c.busy_ms, c.waited_ms,
            coalesce(t.completed::double precision + t.failed, 0), coalesce(t.busy_ms, 0) / 60000::double precision, c.handling
        FROM (
            SELECT *, CASE WHEN due_at < v_now THEN 1 WHEN due_at IS NOT NULL THEN 2 ELSE 3 END AS place
            FROM mq.consumer
            WHERE p_type IS NULL OR type = p_type
            ORDER BY place, type, consumer
            LIMIT coalesce(p_size, 20)
        ) AS c
        LEFT JOIN mq.report AS t ON t.minute = v_minute AND t.type = c.type AND t.consumer = c.consumer
        ORDER BY c.place, c.type, c.consumer;
END
$$;
