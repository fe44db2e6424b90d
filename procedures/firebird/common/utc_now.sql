-- utc_now: the time in UTC, at the moment of the call.
-- Arguments:   none
-- Returns:     a timestamp without a zone, to the millisecond
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq_utc_now() FROM rdb$database;
--
-- Firebird 3.0 has no time zones: it returns the server's local time, so run that server with TZ=UTC.

CREATE OR ALTER FUNCTION mq_utc_now
RETURNS timestamp
AS
/*!4 DECLARE v_now timestamp WITH TIME ZONE; */
BEGIN
    -- CURRENT_TIMESTAMP does not change while a procedure runs. Each session can have its own time zone, and a cast to a
    -- timestamp gives the session's local time, even for a value AT another time zone.
    /*!4 v_now = CAST('NOW' AS timestamp WITH TIME ZONE);
    RETURN DATEADD(-(EXTRACT(TIMEZONE_HOUR FROM v_now) * 60 + EXTRACT(TIMEZONE_MINUTE FROM v_now)) MINUTE
        TO CAST(v_now AS timestamp)); */
    RETURN CAST('NOW' AS timestamp);
END
