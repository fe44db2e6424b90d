-- cron_value: the number that a value of a cron expression stands for.
-- Arguments:   @value (digits, or a name in capitals), @low (the number of the first name), @names (three letters for each; NULL: the
--              field has no names)
-- Returns:     the number; NULL when it is none, and there is no such name
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq.cron_value(N'TUE', 0, N'SUNMONTUEWEDTHUFRISAT');  -- 2

CREATE OR ALTER FUNCTION mq.cron_value (@value nvarchar(400), @low int, @names nvarchar(40))
RETURNS int
AS
BEGIN
    DECLARE @place int;
    -- Code unit by code unit: elsewhere 0-9 also holds digits of other scripts.
    IF @value COLLATE Latin1_General_100_BIN2 LIKE N'[0-9]' OR @value COLLATE Latin1_General_100_BIN2 LIKE N'[0-9][0-9]'
        RETURN CAST(@value AS int);
    IF @value COLLATE Latin1_General_100_BIN2 LIKE N'[A-Z][A-Z][A-Z]'
        SET @place = CHARINDEX(@value COLLATE Latin1_General_100_BIN2, @names COLLATE Latin1_General_100_BIN2) - 1;
    RETURN CASE WHEN @place >= 0 AND @place % 3 = 0 THEN @low + @place / 3 END;
END;
GO
