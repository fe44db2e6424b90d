-- next_occurrence: the first time of a cron expression after a given time.
-- Arguments:   p_cron (five fields, a short form such as @daily, or @every and 1 to 315,360,000 seconds), p_after (UTC,
--              in the years 1970 to 2999; NULL: now), p_time_zone (NULL: UTC; other zones need the server's time zone
--              tables: load them with mysql_tzinfo_to_sql)
-- Returns:     next_at; NULL when no date matches in the next 50 years
-- Errors:      50002 invalid_argument
-- Transaction: reads the server's time zones
-- Example:     CALL mq_next_occurrence('30 2 * * MON-FRI', '2026-11-23 00:00', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_next_occurrence(
    IN p_cron longtext CHARACTER SET utf8mb4,
    IN p_after datetime(6),
    IN p_time_zone longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_next_at datetime(6);
    CALL imq_require_zone(p_time_zone);
    IF p_after NOT BETWEEN '1970-01-01' AND '2999-12-31 23:59:59.999999' THEN
        CALL imq_raise_error('invalid_argument', 'after: must be in the years 1970 to 2999');
    END IF;
    CALL imq_next_time(p_cron, COALESCE(p_after, UTC_TIMESTAMP(6)), COALESCE(p_time_zone, 'UTC'), v_next_at);
    SELECT v_next_at AS next_at;
END
