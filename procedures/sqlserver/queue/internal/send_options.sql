-- send_options: the options of a message that is sent, checked as far as JSON goes; see require_message.
-- Arguments: @options (NULL: none), @of_many (1: for many messages, which have no dedup_key and no on_conflict)
CREATE OR ALTER PROCEDURE mq_internal.send_options
    @options nvarchar(max), @run_at datetime2(7) OUTPUT, @priority bigint OUTPUT, @group_key nvarchar(max) OUTPUT,
    @dedup_key nvarchar(max) OUTPUT, @max_attempts bigint OUTPUT, @headers nvarchar(max) OUTPUT,
    @source nvarchar(max) OUTPUT, @delay_seconds bigint OUTPUT, @on_conflict nvarchar(max) OUTPUT,
    @of_many bit = 0
AS
BEGIN
    DECLARE @read TABLE (name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, value nvarchar(max));
    DECLARE @known nvarchar(max) = CONCAT(N'{"run_at": "time", "priority": [-32768, 32767], "group_key": "text",
        "max_attempts": [1, 1000], "headers": "text", "source": "text", "delay_seconds": [0, 315360000]',
        CASE @of_many WHEN 0 THEN N', "dedup_key": "text", "on_conflict": "text"' END, N'}');
    IF @options IS NULL
        RETURN;
    EXEC mq_internal.require_options @options, N'options', @known;
    INSERT INTO @read (name, value) SELECT name, value FROM mq_internal.read_options(@options, @known);
    SELECT @run_at = CAST((SELECT value FROM @read WHERE name = N'run_at') AS datetime2(7)),
        @priority = CAST((SELECT value FROM @read WHERE name = N'priority') AS bigint),
        @group_key = (SELECT value FROM @read WHERE name = N'group_key'),
        @dedup_key = (SELECT value FROM @read WHERE name = N'dedup_key'),
        @max_attempts = CAST((SELECT value FROM @read WHERE name = N'max_attempts') AS bigint),
        @headers = (SELECT value FROM @read WHERE name = N'headers'),
        @source = (SELECT value FROM @read WHERE name = N'source'),
        @delay_seconds = CAST((SELECT value FROM @read WHERE name = N'delay_seconds') AS bigint),
        @on_conflict = (SELECT value FROM @read WHERE name = N'on_conflict');
END;
