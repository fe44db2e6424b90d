-- next_in_day: the first moment of a date that a cron expression names.
-- Arguments:   @minutes, @hours and @real_time (of read_cron), @zone, @day (a date that matches: days since 1970-01-01), @minute (the
--              first moment that may be it: minutes since 1970-01-01 00:00 UTC)
-- Returns:     minutes since 1970-01-01 00:00 UTC, or NULL
-- Errors:      the server's own when it does not know the zone
-- Transaction: reads nothing
-- Example:     SELECT mq.next_in_day(@minutes, @hours, 0, N'UTC', 20000, 28800000);  -- 28800150 for 30 2 * * *
--
-- When the clocks are set forward, what is named in the hour that does not exist comes once, as they are changed. When they are set
-- back, the hour that comes twice counts once. With * for the hour nothing is moved or left out: what comes every ten minutes goes on
-- every ten minutes, as in Vixie's cron.

CREATE OR ALTER FUNCTION mq.next_in_day (
    @minutes varchar(60), @hours varchar(60), @real_time bit, @zone nvarchar(128), @day int, @minute bigint
)
RETURNS bigint
AS
BEGIN
    DECLARE @midnight bigint = CAST(@day AS bigint) * 1440, @before int, @after int, @change bigint, @from bigint, @found bigint;
    -- No zone is a day away from UTC: all of the date lies between the two.
    SELECT @before = mq.zone_minutes(@zone, @midnight - 1440), @after = mq.zone_minutes(@zone, @midnight + 2880),
        @change = mq.find_change(@zone, @midnight - 1440, @midnight + 2880);
    SET @from = @minute + @before - @midnight;
    SET @found = mq.next_minute(@minutes, @hours, CASE WHEN @from > 0 THEN @from ELSE 0 END,
        COALESCE(@change - 1 + @before - @midnight, 1439));
    IF @found IS NOT NULL
        RETURN @midnight + @found - @before;
    IF @change IS NULL
        RETURN NULL;

    SET @from = @change + @before - @midnight;
    IF @after > @before AND @real_time = 0 AND @minute <= @change AND mq.next_minute(@minutes, @hours,
        CASE WHEN @from > 0 THEN @from ELSE 0 END, @change + @after - 1 - @midnight) IS NOT NULL
        RETURN @change;

    -- The latest of these, and of the day's beginning.
    SELECT @from = MAX(f.minute)
    FROM (
        VALUES (CAST(0 AS bigint)), (@minute + @after - @midnight), (@change + @after - @midnight),
            (CASE @real_time WHEN 1 THEN 0 ELSE @change + @before - @midnight END)
    ) AS f (minute);
    SET @found = mq.next_minute(@minutes, @hours, @from, 1439);
    RETURN @midnight + @found - @after;
END;
GO
