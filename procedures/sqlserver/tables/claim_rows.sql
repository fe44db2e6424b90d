-- claim_rows: claim up to @size rows of an adopted table under one new batch key.
-- Arguments:   @name, @size (1 to 10,000; NULL: 1), @reader (NULL: the connection's application name), @lease_seconds (NULL: 60)
-- Returns:     id, key, row, attempt, batch_key, lease_until; in the order of the ids
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; claims of one table wait for each other until its end; rows that others have locked are passed
--              over
-- Example:     EXEC mq.claim_rows N'orders', 100, N'worker-1', 60;

CREATE OR ALTER PROCEDURE mq.claim_rows
    @name nvarchar(max),
    @size bigint = NULL,
    @reader nvarchar(max) = NULL,
    @lease_seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a limit of the session would hold in here too
    -- For as long as this call: it passes over locked rows, which no higher level allows.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @table nvarchar(400), @who nvarchar(400);
    DECLARE @key uniqueidentifier = NEWID(), @left int, @seconds int, @now datetime2(7), @until datetime2(7);
    DECLARE @lost uniqueidentifier, @top int, @took int = 1, @count int, @from_place bit = 0;
    DECLARE @status nvarchar(300), @most int, @place bit = 0, @swept bit = 0;
    DECLARE @expired TABLE (batch_key uniqueidentifier NOT NULL PRIMARY KEY);
    DECLARE @due TABLE (id bigint NOT NULL PRIMARY KEY);
    BEGIN TRY
        EXEC mq.require_name 'name', @name, 0;
        EXEC mq.require_range 'size', @size, 1, 10000;
        EXEC mq.require_name 'reader', @reader, 1;
        EXEC mq.require_range 'lease_seconds', @lease_seconds, 0, 315360000;
        SELECT @table = @name, @left = COALESCE(@size, 1), @seconds = COALESCE(@lease_seconds, 60), @who = @reader;
        SET @who = mq.reader_name(@who);
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq.lock_polled @table;
        EXEC mq.require_rights @table, 1;
        SELECT @status = status_column, @most = max_attempts,
            @place = CASE
                WHEN status_column IS NOT NULL OR (on_complete = 'delete' AND key_columns IS NULL) THEN 0
                ELSE 1
            END,
            @now = SYSUTCDATETIME()
        FROM mq.polled WHERE name = @table;
        SET @until = DATEADD(SECOND, @seconds, @now);

        -- What a lost consumer held comes again. First the keys, without keeping a lock; who finishes one keeps it.
        INSERT INTO @expired (batch_key)
        SELECT batch_key FROM mq.polled_batch WITH (READPAST, READCOMMITTEDLOCK) WHERE name = @table AND lease_until <= @now;
        WHILE EXISTS (SELECT * FROM @expired)
        BEGIN
            SELECT TOP (1) @lost = batch_key FROM @expired;
            DELETE FROM @expired WHERE batch_key = @lost;
            DELETE FROM mq.polled_batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE batch_key = @lost AND lease_until <= @now;
            SET @took = @@ROWCOUNT;
            WHILE @took > 0
            BEGIN
                UPDATE TOP (1000) mq.polled_row
                SET state = 'N', batch_key = NULL, run_at = @now, error = N'lease expired'
                WHERE batch_key = @lost;
                SET @took = @@ROWCOUNT;
            END;
        END;

        -- What waits for another attempt comes first.
        SET @took = 1;
        WHILE @took > 0 AND @left > 0
        BEGIN
            DELETE FROM @due;
            SET @top = CASE WHEN @left < 1000 THEN @left ELSE 1000 END;
            INSERT INTO @due (id)
            SELECT TOP (@top) id FROM mq.polled_row WITH (READPAST, READCOMMITTEDLOCK)
            WHERE name = @table AND state = 'N' AND run_at <= @now
            ORDER BY run_at, id;
            SET @took = @@ROWCOUNT;
            IF @took > 0
            BEGIN
                UPDATE e
                SET batch_key = @key, todo = CASE WHEN e.attempts >= @most THEN 'X' ELSE 'P' END, hit = 0, refused = 0, retry = NULL
                FROM @due AS d
                INNER JOIN mq.polled_row AS e WITH (UPDLOCK, ROWLOCK) ON e.id = d.id
                OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                EXEC mq.take_due @table, @key, @who, @count OUTPUT;
                SET @left = @left - @count;
                -- What is locked stays due, and would be looked at again.
                IF @count < @took
                    SET @took = 0;
            END;
        END;

        -- What stands at active_value without an entry is looked for once a second, and when the claim comes back short.
        IF @left > 0 AND EXISTS (
            SELECT * FROM mq.polled_place
            WHERE name = @table AND (swept_at IS NULL OR swept_at NOT BETWEEN DATEADD(SECOND, -1, @now) AND @now)
        )
        BEGIN
            SET @top = CASE WHEN @left < 1000 THEN @left ELSE 1000 END;
            EXEC mq.pick_lost @table, @key, @top, @now, @who, @count OUTPUT;
            SELECT @left = @left - @count, @swept = 1;
            UPDATE mq.polled_place SET swept_at = @now WHERE name = @table;
        END;

        -- A claim of the last second has looked from the start: what it came to is where this one goes on.
        SELECT @from_place = CASE
            WHEN @status IS NULL AND @place = 1 AND place IS NOT NULL AND looked_at BETWEEN DATEADD(SECOND, -1, @now) AND @now
                AND EXISTS (SELECT * FROM mq.polled WHERE name = @table AND on_complete = 'delete') THEN 1
            ELSE 0
        END
        FROM mq.polled_place WHERE name = @table;
        WHILE @left > 0
        BEGIN
            SET @top = CASE WHEN @left < 1000 THEN @left ELSE 1000 END;
            EXEC mq.pick_rows @table, @key, @top, @from_place, @now, @who, @took OUTPUT;
            IF @place = 1 AND @took > 0
                UPDATE p
                SET place = e.place, place_hash = e.ident_hash, copies = e.copies,
                    looked_at = CASE @from_place WHEN 1 THEN p.looked_at ELSE @now END
                FROM (SELECT MAX(id) AS id FROM mq.polled_row WHERE batch_key = @key AND todo = 'P') AS n
                INNER JOIN mq.polled_row AS e ON e.id = n.id
                INNER JOIN mq.polled_place AS p ON p.name = e.name;
            SET @left = @left - @took;
            IF @took < @top AND @from_place = 0
                BREAK;
            -- Something may stand before the place where the last claim ended.
            IF @took < @top
                SET @from_place = 0;
        END;
        EXEC mq.take_new @table, @key, @count OUTPUT;
        IF @left > 0 AND @swept = 0
        BEGIN
            SET @top = CASE WHEN @left < 1000 THEN @left ELSE 1000 END;
            EXEC mq.pick_lost @table, @key, @top, @now, @who, @count OUTPUT;
        END;

        IF EXISTS (SELECT * FROM mq.polled_row WHERE batch_key = @key)
            INSERT INTO mq.polled_batch (batch_key, lease_until, lease_seconds, name, reader)
            VALUES (@key, @until, @seconds, @table, @who);
        SELECT id, key_json AS [key], row_json AS [row], attempts AS attempt, batch_key, @until AS lease_until
        FROM mq.polled_row
        WHERE batch_key = @key
        ORDER BY id;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;
GO
