-- microseconds: the current time in the unit of the token buckets.
-- Arguments:   none
-- Returns:     microseconds since 1970-01-01 in UTC
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq_microseconds() FROM rdb$database;

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_microseconds
RETURNS bigint
AS
BEGIN
    RETURN 1000 * DATEDIFF(MILLISECOND FROM CAST('1970-01-01' AS timestamp) TO mq_utc_now());
END^

SET TERM ; ^
