-- purge: delete the messages of one queue and state, the oldest of dead and archived ones first.
-- Arguments:   @type (1 to 200 characters), @state (N: ready and delayed; E: dead; C: archived), @before (UTC; only
--              those that died or were completed earlier, not with N; NULL: all), @size (1 to 10,000; NULL: 1,000)
-- Returns:     affected (messages deleted; repeat until it is 0), known (0: nothing has this name)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; skips messages that a claim is taking at this moment
-- Example:     DECLARE @before datetime2(7) = DATEADD(DAY, -90, SYSUTCDATETIME()); EXEC mq.purge N'email', N'C', @before, 10000;
CREATE OR ALTER PROCEDURE mq.purge
    @type nvarchar(max),
    @state nvarchar(max),
    @before datetime2(7) = NULL,
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @grouped bit, @count bigint = 0, @gone bigint, @most int, @known smallint, @step int = 1000, @top int, @stage int;
    DECLARE @states varchar(3);
    DECLARE @items mq.items;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        SET @name = @type;
        -- Compared with a character appended, because the server ignores trailing blanks.
        IF @state IS NULL OR (@state + N'.') COLLATE Latin1_General_100_BIN2 NOT IN (N'N.', N'E.', N'C.')
            EXEC mq_internal.raise_error 'invalid_argument', N'state: must be N, E or C';
        IF @state = N'N' AND @before IS NOT NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'before: must be NULL with state N';
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        SELECT @most = COALESCE(@size, 1000), @before = COALESCE(@before, '9999-12-31 23:59:59.9999999');
        IF @own = 1
            BEGIN TRANSACTION;
        SET @known = mq_internal.is_known(@name);
        SELECT @grouped = grouped FROM mq_internal.policy(@name);
        SET @states = @state;
        IF @states = 'C'
            EXEC mq_internal.erase_archived @name, @before, @most, @count OUTPUT;
        ELSE
            -- 1: dead, 2: ready, 3: ready in a queue with groups, 4: delayed, the last stage.
            SET @stage = CASE WHEN @states = 'E' THEN 1 WHEN @grouped = 1 THEN 3 ELSE 2 END;
        WHILE @stage IS NOT NULL AND @count < @most
        BEGIN
            DELETE FROM @items;
            SET @top = CASE WHEN @most - @count < @step THEN @most - @count ELSE @step END;
            -- Only erase locks these messages, because it takes the locks in the order of the tables.
            IF @stage = 1
                INSERT INTO @items (id, attempts)
                SELECT TOP (@top) id, attempts
                FROM mq.dead WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @name AND died_at < @before
                ORDER BY died_at, id;
            ELSE IF @stage = 2
                INSERT INTO @items (id, attempts)
                SELECT id, MAX(attempts)
                -- A ticket of a message may remain from the time when the queue was ordered.
                FROM (
                    SELECT TOP (@top) id, attempts
                    FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE type = @name
                    ORDER BY priority, lane, run_at, id
                ) AS r
                GROUP BY id;
            ELSE IF @stage = 3
                INSERT INTO @items (id, attempts)
                SELECT TOP (@top) id, attempts
                FROM mq.grouped WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @name
                ORDER BY group_key, id;
            ELSE
                INSERT INTO @items (id, attempts)
                SELECT TOP (@top) id, attempts
                FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @name
                ORDER BY run_at, id;
            SET @gone = 0;
            IF EXISTS (SELECT * FROM @items)
                EXEC mq_internal.erase @name, @items, @states, @gone OUTPUT;
            SET @count = @count + @gone;
            IF @gone = 0
                SET @stage = CASE WHEN @stage IN (2, 3) THEN 4 END;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected, @known AS known;
END;
