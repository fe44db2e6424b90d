-- utc_now: the time in UTC, at the moment of the call.
-- Arguments:   none
-- Returns:     a timestamp without a zone, to the millisecond
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq_utc_now() FROM rdb$database;
--
-- This variant is for Firebird 3.0, which has no time zones: it returns the server's local time, so run the server with
-- TZ=UTC. utc_now.4.sql replaces it from 4.0 on.

SET TERM ^ ;
CREATE OR ALTER FUNCTION mq_utc_now
RETURNS timestamp
AS
BEGIN
    -- CURRENT_TIMESTAMP does not change while a procedure runs.
    RETURN CAST('NOW' AS timestamp);
END^
SET TERM ; ^
