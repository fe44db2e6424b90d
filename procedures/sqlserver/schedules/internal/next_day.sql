-- next_day: the first date from @day on that a cron expression matches.
-- Arguments: @days, @months, @weekdays and @both_days (of read_cron), @day (days since 1970-01-01)
-- Returns: days since 1970-01-01; NULL when no date in the next 50 years matches
CREATE OR ALTER FUNCTION mq_internal.next_day (@days varchar(60), @months varchar(60), @weekdays varchar(60), @both_days bit, @day int)
RETURNS int
AS
BEGIN
    DECLARE @date date = DATEADD(DAY, @day, CAST('1970-01-01' AS date)), @limit date, @matches int;
    SET @limit = DATEADD(YEAR, 50, @date);
    WHILE @date < @limit
    BEGIN
        IF SUBSTRING(@months, MONTH(@date) + 1, 1) = '0'
            SET @date = DATEADD(MONTH, 1, DATEADD(DAY, 1 - DAY(@date), @date));
        ELSE
        BEGIN
            -- 1970-01-04 was a Sunday. DATEPART would depend on the session's first day of the week.
            SET @matches = CAST(SUBSTRING(@days, DAY(@date) + 1, 1) AS int)
                + CAST(SUBSTRING(@weekdays, (DATEDIFF(DAY, CAST('1970-01-04' AS date), @date) + 7) % 7 + 1, 1) AS int);
            IF @matches = 2 OR (@matches = 1 AND @both_days = 0)
                RETURN DATEDIFF(DAY, CAST('1970-01-01' AS date), @date);
            SET @date = DATEADD(DAY, 1, @date);
        END;
    END;
    RETURN NULL;
END;
