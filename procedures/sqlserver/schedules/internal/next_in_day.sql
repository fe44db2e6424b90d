-- next_in_day: the first time of a date that a cron expression matches.
-- Arguments: @minutes, @hours and @real_time (of read_cron), @zone, @day (a date that matches: days since 1970-01-01),
--     @minute (the earliest result: minutes since 1970-01-01 00:00 UTC)
-- Returns: minutes since 1970-01-01 00:00 UTC; NULL: no time of this date
--
-- When the clocks are set forward, times in the missing hour occur once, at the change. When they are set back, times
-- in the repeated hour occur once. With * as the hour, no time is moved or skipped: a message every ten minutes is
-- still sent every ten minutes, as in Vixie cron.
CREATE OR ALTER FUNCTION mq_internal.next_in_day (
    @minutes varchar(60), @hours varchar(60), @real_time bit, @zone nvarchar(128), @day int, @minute bigint
)
RETURNS bigint
AS
BEGIN
    DECLARE @midnight bigint = CAST(@day AS bigint) * 1440, @before int, @after int, @change bigint, @from bigint, @found bigint;
    -- Every UTC offset is less than a day: the whole date lies between these two.
    SELECT @before = mq_internal.zone_minutes(@zone, @midnight - 1440), @after = mq_internal.zone_minutes(@zone, @midnight + 2880);
    IF @before <> @after
        SELECT @from = @midnight - 1440, @change = @midnight + 2880;
    -- Find the first minute with the later offset.
    WHILE @change - @from > 1
    BEGIN
        SET @found = (@from + @change) / 2;
        IF mq_internal.zone_minutes(@zone, @found) = @after
            SET @change = @found;
        ELSE
            SET @from = @found;
    END;
    SET @from = @minute + @before - @midnight;
    SET @found = mq_internal.next_minute(@minutes, @hours, CASE WHEN @from > 0 THEN @from ELSE 0 END,
        COALESCE(@change - 1 + @before - @midnight, 1439));
    IF @found IS NOT NULL
        RETURN @midnight + @found - @before;
    IF @change IS NULL
        RETURN NULL;

    SET @from = @change + @before - @midnight;
    IF @after > @before AND @real_time = 0 AND @minute <= @change AND mq_internal.next_minute(@minutes, @hours,
        CASE WHEN @from > 0 THEN @from ELSE 0 END, @change + @after - 1 - @midnight) IS NOT NULL
        RETURN @change;

    -- The latest of these and the start of the day.
    SELECT @from = MAX(f.minute)
    FROM (
        VALUES (CAST(0 AS bigint)), (@minute + @after - @midnight), (@change + @after - @midnight),
            (CASE @real_time WHEN 1 THEN 0 ELSE @change + @before - @midnight END)
    ) AS f (minute);
    SET @found = mq_internal.next_minute(@minutes, @hours, @from, 1439);
    RETURN @midnight + @found - @after;
END;
