-- extra_bytes: how many bytes more than UTF-16 code units a text has in UTF-8.
-- Arguments:   @piece (up to 4,000 code units)
-- Returns:     0 to 8,000
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq.extra_bytes(N'naïve');

CREATE OR ALTER FUNCTION mq.extra_bytes (@piece nvarchar(4000))
RETURNS int
AS
BEGIN
    DECLARE @extra int = 0, @at int, @code int;
    WHILE 1 = 1
    BEGIN
        SET @at = PATINDEX(N'%[^' + NCHAR(1) + N'-' + NCHAR(127) + N']%', @piece COLLATE Latin1_General_100_BIN2);
        IF @at = 0
            RETURN @extra;
        SET @code = UNICODE(SUBSTRING(@piece COLLATE Latin1_General_100_BIN2, @at, 1));
        -- Half of a surrogate pair is two bytes of four.
        SET @extra = @extra + CASE WHEN @code < 2048 OR @code BETWEEN 55296 AND 57343 THEN 1 ELSE 2 END;
        SET @piece = SUBSTRING(@piece COLLATE Latin1_General_100_BIN2, @at + 1, 4000);
    END;
    RETURN @extra;
END;
GO
