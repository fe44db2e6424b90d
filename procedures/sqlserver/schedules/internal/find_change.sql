-- find_change: when a time zone changes its UTC offset.
-- Arguments: @zone, @from and @until (minutes since 1970-01-01 00:00 UTC, at most three days apart)
-- Returns: the first minute with the UTC offset of @until; NULL: the offset does not change
CREATE OR ALTER FUNCTION mq_internal.find_change (@zone nvarchar(128), @from bigint, @until bigint)
RETURNS bigint
AS
BEGIN
    DECLARE @minutes int = mq_internal.zone_minutes(@zone, @until), @before bigint = @from, @change bigint = @until, @middle bigint;
    IF mq_internal.zone_minutes(@zone, @from) = @minutes
        RETURN NULL;
    WHILE @change - @before > 1
    BEGIN
        SET @middle = (@before + @change) / 2;
        IF mq_internal.zone_minutes(@zone, @middle) = @minutes
            SET @change = @middle;
        ELSE
            SET @before = @middle;
    END;
    RETURN @change;
END;
