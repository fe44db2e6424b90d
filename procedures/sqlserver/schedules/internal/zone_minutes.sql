-- zone_minutes: the UTC offset of a time zone at a given time.
-- Arguments: @zone, @minute (the time: minutes since 1970-01-01 00:00 UTC)
-- Returns: the offset in minutes; negative west of Greenwich
CREATE OR ALTER FUNCTION mq_internal.zone_minutes (@zone nvarchar(128), @minute int)
RETURNS int
AS
BEGIN
    DECLARE @epoch datetime2(0) = '1970-01-01';
    DECLARE @at datetimeoffset(0) = TODATETIMEOFFSET(DATEADD(MINUTE, @minute, @epoch), 0);
    RETURN DATEPART(TZOFFSET, @at AT TIME ZONE @zone);
END;
