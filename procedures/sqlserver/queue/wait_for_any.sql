-- wait_for_any: wait until one of several queues has a message ready or the time is up; polls like wait_for_message.
-- Arguments:   @types (1 to 1,000 types, one per line; a type that contains a line feed or begins with a double quote is
--              written as a JSON string), @seconds (0 to 3,600; NULL or 0: do not wait)
-- Returns:     type, ready, next_run_at, reason: as wait_for_message, of the first type in the list that is ready. If none is,
--              of the type with the earliest next_run_at that is not paused. If there is no such time: type and next_run_at
--              are NULL, and reason is that of the first type
-- Errors:      50002 invalid_argument
-- Transaction: starts no transaction; inside the caller's it keeps that transaction open while it waits
-- Example:     EXEC mq.wait_for_any N'email', 30;
CREATE OR ALTER PROCEDURE mq.wait_for_any
    @types nvarchar(max),
    @seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: a snapshot does not see messages sent later, and READPAST skips locked rows.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @ever datetime2(7) = '9999-12-31';
    DECLARE @ready smallint = 0, @now datetime2(7) = SYSUTCDATETIME(), @until datetime2(7), @left bigint;
    DECLARE @n int, @found int, @type nvarchar(400), @at datetime2(7), @why varchar(7);
    DECLARE @name nvarchar(400), @next datetime2(7), @reason varchar(7);
    DECLARE @list TABLE (n int NOT NULL PRIMARY KEY, type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL);
    EXEC mq_internal.require_types @types;
    EXEC mq_internal.require_range 'seconds', @seconds, 0, 3600;
    INSERT INTO @list (n, type) SELECT n, type FROM mq_internal.read_types(@types);
    SELECT @until = DATEADD(SECOND, CAST(COALESCE(@seconds, 0) AS int), @now), @left = COALESCE(@seconds, 0) * 1000;
    WHILE 1 = 1
    BEGIN
        SET @n = 0;
        WHILE @ready = 0 AND @n IS NOT NULL
        BEGIN
            SET @found = NULL;
            SELECT TOP (1) @found = l.n, @name = l.type
            FROM @list AS l
            CROSS APPLY mq_internal.has_work(l.type, @now, @now) AS w
            WHERE l.n > @n
            ORDER BY l.n
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SET @n = @found;
            IF @n IS NOT NULL
                SET @ready = mq_internal.is_ready(@name, @now);
        END;
        -- Also count the pauses: the clock may be set back.
        IF @ready = 1 OR @now >= @until OR @left <= 0
            BREAK;
        EXEC mq_internal.sleep @now, @left OUTPUT;
        SET @now = SYSUTCDATETIME();
    END;
    IF @ready = 1
        EXEC mq_internal.explain_wait @name, @now, @ready, @next OUTPUT, @reason OUTPUT;
    ELSE
    BEGIN
        SELECT @name = NULL, @n = 0;
        WHILE @n IS NOT NULL
        BEGIN
            SET @found = NULL;
            SELECT TOP (1) @found = l.n, @type = l.type
            FROM @list AS l
            CROSS APPLY mq_internal.has_work(l.type, @now, @ever) AS w
            WHERE l.n > @n
            ORDER BY l.n
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SET @n = @found;
            IF @n IS NOT NULL
                EXEC mq_internal.explain_wait @type, @now, 0, @at OUTPUT, @why OUTPUT;
            IF @n IS NOT NULL AND (@at < @next OR (@at IS NOT NULL AND @next IS NULL))
                SELECT @name = @type, @next = @at, @reason = @why;
        END;
        IF @next IS NULL
        BEGIN
            SELECT TOP (1) @type = type FROM @list ORDER BY n;
            EXEC mq_internal.explain_wait @type, @now, 0, @at OUTPUT, @reason OUTPUT;
        END;
    END;
    SELECT @name AS type, @ready AS ready, @next AS next_run_at, @reason AS reason;
END;
