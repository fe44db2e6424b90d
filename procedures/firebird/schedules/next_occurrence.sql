-- next_occurrence: the first time of a cron expression after a given time.
-- Arguments:   p_cron (five fields, a short form such as @daily, or @every and 1 to 315,360,000 seconds), p_after (UTC,
--              in the years 1970 to 2999; NULL: now), p_time_zone (NULL: UTC)
-- Returns:     next_at (UTC); NULL when no date matches in the next 50 years
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq_next_occurrence('30 2 * * MON-FRI', '2026-11-23 00:00', 'Europe/Paris');

CREATE OR ALTER PROCEDURE mq_next_occurrence (
    p_cron mq_argument,
    p_after timestamp = NULL,
    p_time_zone mq_argument = NULL
)
RETURNS (next_at timestamp)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_zone(p_time_zone);
    IF (EXTRACT(YEAR FROM p_after) NOT BETWEEN 1970 AND 2999) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'after: must be in the years 1970 to 2999');
    next_at = imq_next_time(p_cron, COALESCE(p_after, mq_utc_now()), COALESCE(p_time_zone, 'UTC'));
    SUSPEND;
END
