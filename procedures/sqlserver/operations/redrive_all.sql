-- redrive_all: retry the dead letters of a queue, or those with one error; their attempts are reset to 0.
-- Arguments:   @type (1 to 200 characters), @error (an error as list_errors returns it; only dead letters with it are
--              retried; NULL: any), @size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: messages that will be retried, those that died first; repeat until it is 0
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; skips dead letters that another call is changing
-- Example:     EXEC mq.redrive_all N'email', N'connection timed out after # s';
CREATE OR ALTER PROCEDURE mq.redrive_all
    @type nvarchar(max),
    @error nvarchar(max) = NULL,
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @count bigint = 0, @most int = 1000, @step int = 1000, @top int, @took int = 1;
    DECLARE @found TABLE (id bigint NOT NULL PRIMARY KEY);
    -- Longer than any error of list_errors.
    DECLARE @group nvarchar(450) = RTRIM(LEFT(@error, 450));
    DECLARE @back mq.items;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        SELECT @name = @type, @most = COALESCE(@size, @most);
        IF @own = 1
            BEGIN TRANSACTION;
        WHILE @took > 0 AND @count < @most
        BEGIN
            DELETE FROM @found;
            DELETE FROM @back;
            SET @top = CASE WHEN @most - @count < @step THEN @most - @count ELSE @step END;
            -- First the ids, without holding locks, then the rows by their primary key: two calls that lock rows of one
            -- table through two indexes deadlock.
            IF @group IS NOT NULL
                INSERT INTO @found (id)
                SELECT TOP (@top) id
                FROM mq.dead WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (dead_error))
                WHERE type = @name AND error_group = @group
                ORDER BY died_at, id;
            ELSE
                INSERT INTO @found (id)
                SELECT TOP (@top) id
                FROM mq.dead WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @name
                ORDER BY died_at, id;
            -- Lock the message before its dead letter, as erase does: a message that is being cancelled is skipped.
            DELETE e
            OUTPUT deleted.id, 0 INTO @back (id, attempts)
            FROM @found AS f
            INNER JOIN mq.message AS m WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = f.id
            INNER JOIN mq.dead AS e WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON e.id = f.id
            WHERE e.type = @name AND (@group IS NULL OR e.error_group = @group)
            OPTION (FORCE ORDER, LOOP JOIN);
            SET @took = @@ROWCOUNT;
            SET @count = @count + @took;
            IF @took > 0
                EXEC mq_internal.place_ready @name, @back;
        END;
        IF @count > 0
            EXEC mq_internal.lower_mark @name;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected;
END;
