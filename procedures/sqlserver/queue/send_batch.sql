-- send_batch: send many messages in one call: all of them or none.
-- Arguments:   @type (1 to 200 characters), @bodies (1 to 10,000 bodies of up to 16 MiB, one per line; a body that is
--              empty, contains a line feed or begins with a double quote is written as a JSON string), @options (a flat JSON
--              object, for all messages; NULL: none): run_at, delay_seconds, priority, group_key, max_attempts, headers,
--              source, with the limits of send_with
-- Returns:     affected: messages sent
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the messages can be claimed when it commits
-- Example:     EXEC mq.send_batch N'email', N'{"to":"ada@example.org"}', N'{"delay_seconds": 60}';
CREATE OR ALTER PROCEDURE mq.send_batch
    @type nvarchar(max),
    @bodies nvarchar(max),
    @options nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @grouped bit, @ring bit, @fair bit;
    DECLARE @run_at datetime2(7), @priority bigint, @group_key nvarchar(max), @dedup_key nvarchar(max), @max_attempts bigint,
        @headers nvarchar(max), @source nvarchar(max), @delay_seconds bigint, @on_conflict nvarchar(max);
    DECLARE @rank smallint, @group nvarchar(400), @sender nvarchar(400);
    DECLARE @count int, @bad int, @line int = 0, @item nvarchar(max), @detail nvarchar(2000), @step int = 1000, @took int = 1;
    DECLARE @lines TABLE (n int NOT NULL PRIMARY KEY, item nvarchar(max), valid bit NOT NULL);
    DECLARE @sent TABLE (id bigint NOT NULL PRIMARY KEY);
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        SET @name = @type;
        IF @options IS NOT NULL
        BEGIN
            EXEC mq_internal.send_options @options, @run_at OUTPUT, @priority OUTPUT, @group_key OUTPUT, @dedup_key OUTPUT,
                @max_attempts OUTPUT, @headers OUTPUT, @source OUTPUT, @delay_seconds OUTPUT, @on_conflict OUTPUT, 1;
            EXEC mq_internal.require_message N'', @run_at OUTPUT, @priority, @group_key, @dedup_key, @max_attempts, @headers, @source,
                @delay_seconds, @on_conflict, @now;
        END;
        -- The types of the columns: see require_name.
        SELECT @run_at = COALESCE(@run_at, @now), @rank = COALESCE(@priority, 0), @group = @group_key,
            @sender = mq_internal.consumer_name(@source);
        INSERT INTO @lines (n, item, valid) SELECT n, item, valid FROM mq_internal.split_list(@bodies);
        SELECT @count = COUNT(*) FROM @lines;
        SELECT @bad = MIN(n) FROM @lines WHERE valid = 0;
        IF @bad IS NOT NULL
            SET @detail = CONCAT(N'bodies: line ', @bad,
                N' begins with a double quote and is not a JSON string that this database can hold');
        ELSE IF @count NOT BETWEEN 1 AND 10000
            SET @detail = CONCAT(N'bodies: must be 1 to 10,000 lines, not ', @count);
        IF @detail IS NOT NULL
            EXEC mq_internal.raise_error 'invalid_argument', @detail;
        -- Count the bytes only of lines that are long enough to exceed the limit.
        WHILE @line IS NOT NULL
        BEGIN
            SET @line = (SELECT MIN(n) FROM @lines WHERE n > @line AND DATALENGTH(item) > 11184810);
            IF @line IS NOT NULL
            BEGIN
                SELECT @item = item FROM @lines WHERE n = @line;
                SET @detail = CONCAT(N'bodies: line ', @line);
                EXEC mq_internal.require_body @detail, @item, 16777216, N'16 MiB (16,777,216 bytes)', 0;
            END;
        END;
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @grouped = grouped, @ring = ring, @fair = fair FROM mq_internal.policy(@name);
        SET @line = 0;
        WHILE @took > 0
        BEGIN
            DELETE FROM @sent;
            -- The server assigns the ids in the order of the SELECT, which is the order of the lines.
            INSERT INTO mq.message (run_at, created_at, priority, max_attempts, type, body, headers, group_key, source)
            OUTPUT inserted.id INTO @sent (id)
            SELECT TOP (@step) @run_at, @now, @rank, @max_attempts, @name, item, @headers, @group, @sender
            FROM @lines WHERE n > @line ORDER BY n;
            SET @took = @@ROWCOUNT;
            IF @took > 0
            BEGIN
                SELECT @line = MAX(n) FROM (SELECT TOP (@step) n FROM @lines WHERE n > @line ORDER BY n) AS l;
                IF @run_at > @now
                    INSERT INTO mq.delayed (type, run_at, id, priority, attempts) SELECT @name, @run_at, id, @rank, 0 FROM @sent;
                ELSE
                BEGIN
                    IF @grouped = 1
                        INSERT INTO mq.grouped (type, group_key, id, attempts) SELECT @name, COALESCE(@group, N''), id, 0 FROM @sent;
                    INSERT INTO mq.ready (type, priority, lane, run_at, id, attempts)
                    SELECT @name, p.priority, p.lane, p.run_at, s.id, 0
                    FROM mq_internal.place(@ring, @fair, @grouped, @rank, @group, @run_at) AS p
                    CROSS JOIN @sent AS s;
                END;
            END;
        END;
        IF @run_at < @now
            EXEC mq_internal.lower_mark @name;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT CAST(@count AS bigint) AS affected;
END;
