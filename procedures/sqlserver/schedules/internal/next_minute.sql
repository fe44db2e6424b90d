-- next_minute: the first minute of a day that a cron expression matches.
-- Arguments: @minutes and @hours (of read_cron), @from and @until (minutes since midnight, inclusive)
-- Returns: minutes since midnight; NULL: none
CREATE OR ALTER FUNCTION mq_internal.next_minute (@minutes varchar(60), @hours varchar(60), @from bigint, @until bigint)
RETURNS bigint
AS
BEGIN
    DECLARE @offset bigint = @from % 60, @hour bigint = @from / 60, @last bigint, @place bigint;
    SET @last = CASE WHEN @until < 1439 THEN @until ELSE 1439 END / 60;
    WHILE @hour <= @last
    BEGIN
        SET @place = CASE SUBSTRING(@hours, @hour + 1, 1) WHEN '1' THEN CHARINDEX('1', SUBSTRING(@minutes, @offset + 1, 60)) ELSE 0 END;
        IF @place > 0 AND @hour * 60 + @offset + @place - 1 <= @until
            RETURN @hour * 60 + @offset + @place - 1;
        SELECT @hour = @hour + 1, @offset = 0;
    END;
    RETURN NULL;
END;
