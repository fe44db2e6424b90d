-- utc_now: the time in UTC, at the moment of the call.
-- Arguments:   none
-- Returns:     a timestamp without a zone, to the millisecond
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq_utc_now() FROM rdb$database;
--
-- This is the body for Firebird 4.0 and later, beside utc_now.sql for 3.0. A session may have a time zone of its own.

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_utc_now
RETURNS timestamp
AS
DECLARE v_now timestamp WITH TIME ZONE;
BEGIN
    -- CURRENT_TIMESTAMP stands still while a procedure runs. A cast to a timestamp gives the session's local time, whatever
    -- zone the value is AT.
    v_now = CAST('NOW' AS timestamp WITH TIME ZONE);
    RETURN DATEADD(-(EXTRACT(TIMEZONE_HOUR FROM v_now) * 60 + EXTRACT(TIMEZONE_MINUTE FROM v_now)) MINUTE
        TO CAST(v_now AS timestamp));
END^

SET TERM ; ^
