-- claim_rows: claim up to @size rows of a polling table under one new batch key.
-- Arguments:   @name (1 to 200 characters), @size (1 to 10,000; NULL: 1), @consumer (1 to 200 characters; NULL: the
--              application name), @lease_seconds (1 to 86,400; NULL: 60)
-- Returns:     id, row_key, row_data (JSON objects), attempt, batch_key, lease_until: rows to retry first, then new rows in their
--              order; no rows when none is ready
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; claims of one table wait for each other until it ends; skips rows that others have locked
-- Example:     EXEC mq.claim_rows N'orders', 100, N'worker-1', 60;
--
-- An entry is a row of mq.polled_row. It records one claimed, waiting or dead row of the table.
CREATE OR ALTER PROCEDURE mq.claim_rows
    @name nvarchar(max),
    @size bigint = NULL,
    @consumer nvarchar(max) = NULL,
    @lease_seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @table nvarchar(400), @who nvarchar(400);
    DECLARE @key uniqueidentifier = NEWID(), @left int, @seconds int, @now datetime2(7), @until datetime2(7);
    DECLARE @top int, @took int, @count int, @from_place bit = 0, @status nvarchar(300), @place bit = 0, @swept bit = 0;
    DECLARE @lost uniqueidentifier;
    DECLARE @expired TABLE (batch_key uniqueidentifier NOT NULL PRIMARY KEY);
    BEGIN TRY
        EXEC mq_internal.require_name 'name', @name, 0;
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        EXEC mq_internal.require_name 'consumer', @consumer, 1;
        EXEC mq_internal.require_range 'lease_seconds', @lease_seconds, 1, 86400;
        SELECT @table = @name, @left = COALESCE(@size, 1), @seconds = COALESCE(@lease_seconds, 60), @who = @consumer;
        SET @who = mq_internal.consumer_name(@who);
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.lock_polled @table;
        EXEC mq_internal.require_rights @table, 1;
        SELECT @status = status_column,
            @place = CASE
                WHEN status_column IS NOT NULL OR (on_complete = 'delete' AND key_columns IS NULL) THEN 0
                ELSE 1
            END,
            @now = SYSUTCDATETIME()
        FROM mq.polled WHERE name = @table;
        SET @until = DATEADD(SECOND, @seconds, @now);

        -- Read the keys first, without keeping locks: claims that are being finished are skipped.
        INSERT INTO @expired (batch_key)
        SELECT batch_key FROM mq.polled_batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE name = @table AND lease_until <= @now;
        WHILE EXISTS (SELECT * FROM @expired)
        BEGIN
            SELECT TOP (1) @lost = batch_key FROM @expired;
            DELETE FROM @expired WHERE batch_key = @lost;
            DELETE FROM mq.polled_batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE batch_key = @lost AND lease_until <= @now;
            SET @count = @@ROWCOUNT;
            WHILE @count > 0
            BEGIN
                UPDATE TOP (1000) e
                SET state = 'N', batch_key = NULL, run_at = @now, error = N'lease expired'
                FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
                WHERE e.batch_key = @lost;
                SET @count = @@ROWCOUNT;
            END;
        END;
        -- Rows to retry come first.
        EXEC mq_internal.take_due @table, @key, @left, @now, @who, @count OUTPUT;
        SET @left = @left - @count;

        -- Look for rows at active_value without an entry once a second, and when the claim has too few rows.
        IF @left > 0 AND EXISTS (
            SELECT * FROM mq.polled_place
            WHERE name = @table AND (swept_at IS NULL OR swept_at NOT BETWEEN DATEADD(SECOND, -1, @now) AND @now)
        )
        BEGIN
            SET @top = CASE WHEN @left < 1000 THEN @left ELSE 1000 END;
            EXEC mq_internal.pick_lost @table, @key, @top, @now, @who, @count OUTPUT;
            SELECT @left = @left - @count, @swept = 1;
            UPDATE mq.polled_place SET swept_at = @now WHERE name = @table;
        END;

        -- A claim within the last second has scanned from the start: continue at its low-water mark.
        SELECT @from_place = CASE
            WHEN @status IS NULL AND @place = 1 AND place IS NOT NULL AND scanned_at BETWEEN DATEADD(SECOND, -1, @now) AND @now
                AND EXISTS (SELECT * FROM mq.polled WHERE name = @table AND on_complete = 'delete') THEN 1
            ELSE 0
        END
        FROM mq.polled_place WHERE name = @table;
        WHILE @left > 0
        BEGIN
            SET @top = CASE WHEN @left < 1000 THEN @left ELSE 1000 END;
            EXEC mq_internal.pick_rows @table, @key, @top, @from_place, @now, @who, @took OUTPUT;
            IF @place = 1 AND @took > 0
                UPDATE p
                SET place = e.place, place_hash = e.ident_hash, copies = e.copies,
                    scanned_at = CASE @from_place WHEN 1 THEN p.scanned_at ELSE @now END
                FROM (SELECT MAX(id) AS id FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch)) WHERE batch_key = @key AND todo = 'P') AS n
                INNER JOIN mq.polled_row AS e ON e.id = n.id
                INNER JOIN mq.polled_place AS p ON p.name = e.name;
            SET @left = @left - @took;
            IF @took < @top AND @from_place = 0
                BREAK;
            -- Rows may have appeared before the low-water mark.
            IF @took < @top
                SET @from_place = 0;
        END;
        EXEC mq_internal.take_new @table, @key, @count OUTPUT;
        IF @left > 0 AND @swept = 0
        BEGIN
            SET @top = CASE WHEN @left < 1000 THEN @left ELSE 1000 END;
            EXEC mq_internal.pick_lost @table, @key, @top, @now, @who, @count OUTPUT;
        END;

        IF EXISTS (SELECT * FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch)) WHERE batch_key = @key)
            INSERT INTO mq.polled_batch (batch_key, lease_until, lease_seconds, name, consumer)
            VALUES (@key, @until, @seconds, @table, @who);
        SELECT id, key_json AS row_key, row_json AS row_data, attempts AS attempt, batch_key, @until AS lease_until
        FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
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
