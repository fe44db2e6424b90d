-- redrive: retry dead letters, with their attempts reset to 0.
-- Arguments:   @type (1 to 200 characters), @id (NULL: all, those that died first, at most 10,000 per call), @error (an
--              error as list_errors returns it; only dead letters with it are retried, among the newest 10,000; NULL:
--              any)
-- Returns:     count: messages that will be retried; repeat until it is 0
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; skips dead letters that another call is changing
-- Example:     EXEC mq.redrive N'email';

CREATE OR ALTER PROCEDURE mq.redrive
    @type nvarchar(max),
    @id bigint = NULL,
    @error nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @grouped bit, @ring bit, @count bigint = 0, @most int = 10000, @step int = 1000, @top int, @took int = 1;
    -- died_at: the error that was compared belongs to this death.
    DECLARE @found TABLE (id bigint NOT NULL PRIMARY KEY, died_at datetime2(7));
    DECLARE @same TABLE (id bigint NOT NULL PRIMARY KEY, died_at datetime2(7));
    DECLARE @back mq.items;
    BEGIN TRY
        EXEC mq.require_name 'type', @type, 0;
        SET @name = @type;
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @grouped = grouped FROM mq.policy(@name);
        SET @ring = mq.is_ring(@name);
        IF @error IS NOT NULL
            INSERT INTO @same (id, died_at)
            SELECT e.id, e.died_at
            FROM (
                SELECT n.id
                FROM (
                    SELECT TOP (@most) id
                    FROM mq.dead WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE type = @name AND @id IS NULL
                    ORDER BY died_at DESC, id DESC
                ) AS n
                UNION ALL
                SELECT @id WHERE @id IS NOT NULL
            ) AS d
            INNER JOIN mq.dead AS e WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON e.id = d.id
            -- Compared with a character appended, because the server ignores trailing blanks.
            WHERE e.type = @name AND CONCAT(mq.error_group(e.error), N'.') COLLATE Latin1_General_100_BIN2 = @error + N'.'
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        WHILE @took > 0 AND @count < @most
        BEGIN
            DELETE FROM @found;
            DELETE FROM @back;
            SET @top = CASE WHEN @most - @count < @step THEN @most - @count ELSE @step END;
            -- First the ids, without holding locks, then the rows by their primary key: two calls that lock rows of one
            -- table through two indexes deadlock.
            IF @error IS NOT NULL
                DELETE TOP (@step) FROM @same OUTPUT deleted.id, deleted.died_at INTO @found (id, died_at);
            ELSE IF @id IS NULL
                INSERT INTO @found (id)
                SELECT TOP (@top) id
                FROM mq.dead WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @name
                ORDER BY died_at, id;
            ELSE
                INSERT INTO @found (id) VALUES (@id);
            -- Lock the message before its dead letter, as erase does: a message that is being cancelled is skipped.
            DELETE e
            OUTPUT deleted.id, 0 INTO @back (id, attempts)
            FROM @found AS f
            INNER JOIN mq.message AS m WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = f.id
            INNER JOIN mq.dead AS e WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON e.id = f.id
            WHERE e.type = @name AND (f.died_at IS NULL OR e.died_at = f.died_at)
            OPTION (FORCE ORDER, LOOP JOIN);
            SET @took = @@ROWCOUNT;
            SET @count = @count + @took;
            IF @took > 0
                EXEC mq.place_ready @name, @back, @grouped, @ring;
            IF @error IS NOT NULL
                SET @took = CASE WHEN EXISTS (SELECT * FROM @same) THEN 1 ELSE 0 END;
            ELSE IF @id IS NOT NULL
                SET @took = 0;
        END;
        IF @count > 0
            EXEC mq.lower_mark @name;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS count;
END;
GO
