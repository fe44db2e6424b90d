-- microseconds: the current time in microseconds since 1970, as the token buckets have it.
CREATE OR ALTER FUNCTION imq_microseconds
RETURNS bigint
AS
BEGIN
    RETURN 1000 * DATEDIFF(MILLISECOND FROM CAST('1970-01-01' AS timestamp) TO mq_utc_now());
END
