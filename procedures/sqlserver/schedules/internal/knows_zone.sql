-- knows_zone: whether the server knows a time zone.
-- Returns: 1 or 0
CREATE OR ALTER FUNCTION mq_internal.knows_zone (@zone nvarchar(400))
RETURNS bit
AS
BEGIN
    RETURN CASE
        WHEN UPPER(@zone COLLATE Latin1_General_100_BIN2) = N'UTC' OR EXISTS (SELECT * FROM sys.time_zone_info AS z WHERE z.name = @zone) THEN 1
        ELSE 0
    END;
END;
