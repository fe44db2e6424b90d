-- next_occurrence: the first time of a cron expression after a given time.
-- Arguments:   p_cron (five fields, a short form such as @daily, or @every and 1 to 315,360,000 seconds), p_after (in the
--              years 1970 to 2999; NULL: now), p_time_zone (NULL: UTC)
-- Returns:     next_at; NULL when no date matches in the next 50 years
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT mq.next_occurrence('30 2 * * MON-FRI', '2026-11-23 00:00Z', 'Europe/Paris');
CREATE OR REPLACE FUNCTION mq.next_occurrence(
    p_cron text,
    p_after timestamptz DEFAULT NULL,
    p_time_zone text DEFAULT NULL,
    OUT next_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    PERFORM mq_internal.require_zone(p_time_zone);
    IF p_after NOT BETWEEN timestamptz '1970-01-01 00:00:00+00' AND timestamptz '2999-12-31 23:59:59.999999+00' THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'after: must be in the years 1970 to 2999');
    END IF;
    next_at := mq_internal.next_time(p_cron, coalesce(p_after, clock_timestamp()), coalesce(p_time_zone, 'UTC'));
END
$$;
