-- area_health: the check of queue_health for schedules.
CREATE OR ALTER FUNCTION mq_internal.area_health ()
RETURNS @checks TABLE (
    name varchar(60) NOT NULL PRIMARY KEY, verdict varchar(4) NOT NULL, value float, unit varchar(20) NOT NULL, detail nvarchar(max) NOT NULL
)
AS
BEGIN
    DECLARE @value int = 0, @name nvarchar(400) = N'', @stopped nvarchar(max);
    WHILE @name IS NOT NULL AND @value < 10
    BEGIN
        SET @name = (
            SELECT MIN(name) FROM mq.schedule WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE next_at IS NULL AND name > @name
        );
        IF @name IS NOT NULL
            SELECT @value = @value + 1, @stopped = CONCAT(@stopped + N', ', @name);
    END;
    INSERT INTO @checks (name, verdict, value, unit, detail)
    VALUES ('stopped_schedules', CASE @value WHEN 0 THEN 'ok' ELSE 'bad' END, @value, 'schedules',
        COALESCE(N'the server does not know the time zone of ' + @stopped + N'; call set_schedule again with a name of sys.time_zone_info',
            N'none'));
    RETURN;
END;
