-- knows_zone: whether the server knows a time zone.
-- Arguments:   @zone
-- Returns:     1 or 0
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT mq.knows_zone(N'Romance Standard Time');

CREATE OR ALTER FUNCTION mq.knows_zone (@zone nvarchar(400))
RETURNS bit
AS
BEGIN
    RETURN CASE
        WHEN UPPER(@zone COLLATE Latin1_General_100_BIN2) = N'UTC' OR EXISTS (SELECT * FROM sys.time_zone_info AS z WHERE z.name = @zone) THEN 1
        ELSE 0
    END;
END;
GO
