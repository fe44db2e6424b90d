-- write_entries: write the rows that find_entries has found.
-- Arguments: @pieces (of the table, with rows and from: see write_rows), @keyed (1: the table has a key), @delete (1:
--     delete done rows), @flag (only entries with this active), @from (the status of their rows: parameter of the piece
--     from), @todo (only entries with this), @to (the new status), @low and @high (range of entry ids)
-- Returns: in #mq_entry: hit (0: the row is gone) and refused (1: the table refused the change; error says why)
CREATE OR ALTER PROCEDURE mq_internal.write_entries
    @pieces mq.pieces READONLY, @keyed bit, @delete bit, @flag int, @from nvarchar(max), @todo char(1),
    @to nvarchar(max), @low bigint, @high bigint
AS
BEGIN
    DECLARE @statement nvarchar(max), @n int = 0, @last int, @first bigint, @until bigint, @top int, @hash varbinary(32), @took int;
    DECLARE @why nvarchar(max);
    DECLARE @units TABLE (
        n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, low bigint NOT NULL, high bigint NOT NULL, size int NOT NULL,
        hash varbinary(32)
    );
    SET @statement = mq_internal.fill(CONCAT(CASE
        WHEN @todo = 'D' AND @delete = 1 THEN N'DELETE TOP (@top) t'
        ELSE N'UPDATE TOP (@top) t SET {status} = {to}'
    END, N'
{rows} AND {from} AND e.todo = @todo AND e.hit = 1
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
SET @took = @@ROWCOUNT;'), @pieces);
    IF @keyed = 1
        INSERT INTO @units (low, high, size) VALUES (@low, @high, 1000);
    ELSE
        INSERT INTO @units (low, high, size, hash)
        SELECT MIN(id), MIN(id), COUNT(*), ident_hash
        FROM #mq_entry
        WHERE active = @flag AND todo = @todo AND hit = 1
        GROUP BY ident_hash;
    SELECT @last = MAX(n) FROM @units;
    WHILE @n < @last
    BEGIN
        SET @n = @n + 1;
        SELECT @first = low, @until = high, @top = size, @hash = hash FROM @units WHERE n = @n;
        SET @why = NULL;
        -- For this statement only: a row that a constraint refuses must not doom the transaction.
        SET XACT_ABORT OFF;
        BEGIN TRY
            EXEC sp_executesql @statement, N'@low bigint, @high bigint, @flag int, @from nvarchar(max), @to nvarchar(max),
                @todo char(1), @top int, @took int OUTPUT',
                @low = @first, @high = @until, @flag = @flag, @from = @from, @to = @to, @todo = @todo, @top = @top,
                @took = @took OUTPUT;
        END TRY
        BEGIN CATCH
            IF mq_internal.concerns_all_rows(ERROR_NUMBER(), ERROR_SEVERITY(), XACT_STATE()) = 1
                THROW;
            SELECT @why = ERROR_MESSAGE(), @took = 0;
        END CATCH;
        SET XACT_ABORT ON;
        IF @why IS NOT NULL AND @keyed = 1 AND @first < @until
        BEGIN
            -- The table refuses at least one row: write them one by one to find out which.
            INSERT INTO @units (low, high, size)
            SELECT id, id, 1 FROM #mq_entry WHERE active = @flag AND todo = @todo AND hit = 1 ORDER BY id;
            SELECT @last = MAX(n) FROM @units;
        END
        ELSE IF @why IS NOT NULL
            UPDATE #mq_entry
            SET refused = 1, error = LEFT(@why, 4000)
            WHERE active = @flag AND todo = @todo AND hit = 1
                AND ((@keyed = 1 AND id = @first) OR (@keyed = 0 AND ident_hash = @hash));
        ELSE IF @keyed = 0 AND @took < @top
        BEGIN
            SET @top = @top - @took;
            UPDATE #mq_entry
            SET hit = 0
            WHERE id IN (
                SELECT TOP (@top) id FROM #mq_entry
                WHERE active = @flag AND todo = @todo AND hit = 1 AND ident_hash = @hash
                ORDER BY id DESC
            );
        END;
    END;
    IF @keyed = 1
    BEGIN
        -- A trigger may have undone the change. Always check: only the table's owner can see triggers in the catalog.
        SET @statement = mq_internal.fill(N'UPDATE e
SET refused = 1, error = N''a trigger of the table left the row as it was''
{rows} AND {from} AND e.todo = @todo AND e.hit = 1 AND e.refused = 0
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);', @pieces);
        EXEC sp_executesql @statement, N'@low bigint, @high bigint, @flag int, @from nvarchar(max), @todo char(1)', @low = @low,
            @high = @high, @flag = @flag, @from = @from, @todo = @todo;
    END;
END;
