-- zone_minutes: the UTC offset of a time zone at a given time.
-- Arguments:   p_zone, p_minute (the time: minutes since 1970-01-01 00:00 UTC)
-- Returns:     the offset in minutes; negative west of Greenwich
CREATE OR ALTER FUNCTION imq_zone_minutes (p_zone mq_name, p_minute bigint)
RETURNS integer
AS
/*!4 DECLARE v_at timestamp WITH TIME ZONE; */
BEGIN
    -- Firebird 3.0 has no time zones: require_zone accepts only UTC.
    IF (UPPER(p_zone) = 'UTC') THEN
        RETURN 0;
    /*!4 v_at = CAST(DATEADD(p_minute MINUTE TO timestamp '1970-01-01 00:00:00') || ' UTC' AS timestamp WITH TIME ZONE)
        AT TIME ZONE p_zone;
    RETURN EXTRACT(TIMEZONE_HOUR FROM v_at) * 60 + EXTRACT(TIMEZONE_MINUTE FROM v_at); */
    RETURN 0;
END
