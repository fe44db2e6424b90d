-- next_time: the first time of a cron expression after a given time.
-- Arguments: @cron, @after (UTC), @zone (one that the server knows)
-- Returns: @next_at: the time; NULL when no date in the next 50 years matches
CREATE OR ALTER PROCEDURE mq_internal.next_time
    @cron nvarchar(max), @after datetime2(7), @zone nvarchar(128), @next_at datetime2(7) OUTPUT
AS
BEGIN
    DECLARE @every int, @minutes varchar(60), @hours varchar(60), @days varchar(60), @months varchar(60), @weekdays varchar(60);
    DECLARE @both_days bit, @real_time bit, @epoch datetime2(7) = '1970-01-01', @seconds bigint, @minute bigint, @day int, @found bigint;
    SET @next_at = NULL;
    EXEC mq_internal.read_cron @cron, @every OUTPUT, @minutes OUTPUT, @hours OUTPUT, @days OUTPUT, @months OUTPUT, @weekdays OUTPUT,
        @both_days OUTPUT, @real_time OUTPUT;
    -- DATEDIFF counts the boundaries crossed: whole seconds and minutes.
    SET @seconds = DATEDIFF_BIG(SECOND, @epoch, @after);
    IF @every IS NOT NULL
        SET @found = (@seconds / @every + 1) * @every;
    ELSE
    BEGIN
        SET @minute = @seconds / 60 + 1;
        SET @day = (@minute + mq_internal.zone_minutes(@zone, @minute) + 1440) / 1440 - 1;
        SET @day = mq_internal.next_day(@days, @months, @weekdays, @both_days, @day);
        WHILE @day IS NOT NULL AND @found IS NULL
        BEGIN
            SET @found = mq_internal.next_in_day(@minutes, @hours, @real_time, @zone, @day, @minute) * 60;
            IF @found IS NULL
                SET @day = mq_internal.next_day(@days, @months, @weekdays, @both_days, @day + 1);
        END;
    END;
    -- The number of seconds can exceed the range of DATEADD.
    SET @next_at = DATEADD(SECOND, CAST(@found % 86400 AS int), DATEADD(DAY, CAST(@found / 86400 AS int), @epoch));
END;
