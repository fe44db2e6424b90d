-- read_cron: parse a cron expression.
-- Arguments: @cron (five fields, a short form such as @daily, or @every and seconds)
-- Returns: @every (seconds; NULL for five fields); @minutes, @hours, @days, @months and @weekdays (see
--     read_cron_field), @both_days (1: a date must match both days and weekdays, not only one of them), @real_time (1:
--     the hour is *: see next_in_day)
CREATE OR ALTER PROCEDURE mq_internal.read_cron
    @cron nvarchar(max), @every int OUTPUT, @minutes varchar(60) OUTPUT, @hours varchar(60) OUTPUT,
    @days varchar(60) OUTPUT, @months varchar(60) OUTPUT, @weekdays varchar(60) OUTPUT, @both_days bit OUTPUT,
    @real_time bit OUTPUT
AS
BEGIN
    -- Exactly one blank ends each field.
    DECLARE @left nvarchar(max) = RTRIM(REPLACE(@cron COLLATE Latin1_General_100_BIN2, NCHAR(9), N' '));
    DECLARE @count int = 0, @at int, @field nvarchar(400), @all nvarchar(401), @digits nvarchar(400), @detail nvarchar(2000);
    DECLARE @minute nvarchar(400), @hour nvarchar(400), @day nvarchar(400), @month nvarchar(400), @weekday nvarchar(400);
    -- Trailing blanks do no harm here.
    EXEC mq_internal.require_name 'cron', @left, 0;
    SELECT @every = NULL, @left = LTRIM(@left);
    SET @all = CASE LOWER(@left COLLATE Latin1_General_100_BIN2)
        WHEN N'@hourly' THEN N'0 * * * *'
        WHEN N'@daily' THEN N'0 0 * * *'
        WHEN N'@midnight' THEN N'0 0 * * *'
        WHEN N'@weekly' THEN N'0 0 * * 0'
        WHEN N'@monthly' THEN N'0 0 1 * *'
        WHEN N'@yearly' THEN N'0 0 1 1 *'
        WHEN N'@annually' THEN N'0 0 1 1 *'
        ELSE @left
    END + N' ';
    WHILE @all <> N''
    BEGIN
        SET @at = CHARINDEX(N' ', @all COLLATE Latin1_General_100_BIN2);
        SELECT @field = LEFT(@all, @at - 1), @all = LTRIM(SUBSTRING(@all, @at + 1, 400)), @count = @count + 1;
        IF @count = 1
            SET @minute = @field;
        ELSE IF @count = 2
            SELECT @hour = @field, @digits = @field;
        ELSE IF @count = 3
            SET @day = @field;
        ELSE IF @count = 4
            SET @month = @field;
        ELSE
            SET @weekday = @field;
    END;
    IF @count = 2 AND LOWER(@minute COLLATE Latin1_General_100_BIN2) = N'@every' AND @digits COLLATE Latin1_General_100_BIN2 NOT LIKE N'%[^0-9]%' AND LEN(@digits) < 10
        SET @every = CAST(@digits AS int);
    IF @every BETWEEN 1 AND 315360000
        RETURN;
    IF @count <> 5
    BEGIN
        SET @detail = CONCAT(N'cron: must be five fields (minute, hour, day of month, month, day of week), ',
            N'@hourly, @daily, @weekly, @monthly or @yearly, or @every and 1 to 315,360,000 seconds');
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
    END;
    EXEC mq_internal.read_cron_field N'minute', @minute, 0, 59, NULL, @minutes OUTPUT;
    EXEC mq_internal.read_cron_field N'hour', @hour, 0, 23, NULL, @hours OUTPUT;
    EXEC mq_internal.read_cron_field N'day of month', @day, 1, 31, NULL, @days OUTPUT;
    EXEC mq_internal.read_cron_field N'month', @month, 1, 12, N'JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC', @months OUTPUT;
    EXEC mq_internal.read_cron_field N'day of week', @weekday, 0, 7, N'SUNMONTUEWEDTHUFRISAT', @weekdays OUTPUT;
    IF RIGHT(@weekdays, 1) = '1'
        SET @weekdays = STUFF(@weekdays, 1, 1, '1');
    SELECT @both_days = CASE WHEN LEFT(@day, 1) = N'*' OR LEFT(@weekday, 1) = N'*' THEN 1 ELSE 0 END,
        @real_time = CASE WHEN LEFT(@hour, 1) = N'*' THEN 1 ELSE 0 END;
END;
