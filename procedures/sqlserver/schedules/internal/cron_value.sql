-- cron_value: the number of a value or name in a cron expression.
-- Arguments: @value (digits, or a name in capitals), @low (the number of the first name), @names (three letters per
--     name; NULL: the field has no names)
-- Returns: the number; NULL when it is neither a number nor a name
CREATE OR ALTER FUNCTION mq_internal.cron_value (@value nvarchar(400), @low int, @names nvarchar(40))
RETURNS int
AS
BEGIN
    DECLARE @place int;
    -- Compared by code unit: in other collations 0-9 also matches digits of other scripts.
    IF @value COLLATE Latin1_General_100_BIN2 LIKE N'[0-9]' OR @value COLLATE Latin1_General_100_BIN2 LIKE N'[0-9][0-9]'
        RETURN CAST(@value AS int);
    IF @value COLLATE Latin1_General_100_BIN2 LIKE N'[A-Z][A-Z][A-Z]'
        SET @place = CHARINDEX(@value COLLATE Latin1_General_100_BIN2, @names COLLATE Latin1_General_100_BIN2) - 1;
    RETURN CASE WHEN @place >= 0 AND @place % 3 = 0 THEN @low + @place / 3 END;
END;
