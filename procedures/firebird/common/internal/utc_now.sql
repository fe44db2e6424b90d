-- utc_now: the time in UTC, at the moment of the call.
-- Arguments:   none
-- Returns:     a timestamp without a zone, to the millisecond
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq_utc_now() FROM rdb$database;
--
-- This is the body for Firebird 3.0, which knows no time zones: the server's own time. Run that server with TZ=UTC.
-- utc_now.4.sql is the body for later versions.

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_utc_now
RETURNS timestamp
AS
BEGIN
    -- CURRENT_TIMESTAMP stands still while a procedure runs.
    RETURN CAST('NOW' AS timestamp);
END^

SET TERM ; ^
