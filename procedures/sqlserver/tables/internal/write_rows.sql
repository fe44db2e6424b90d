-- write_rows: do to the rows of an adopted table what is noted in their entries.
-- Arguments:   @name (the adopted table), @key (its entries have this batch key), @ready (what stands for ready_value in rows that are
--              looked for), @skip (1: pass over what others have locked, and keep each row's JSON in its entry)
-- Returns:     in the entries: hit (1: found and written; 2: there with another status; 0: neither), refused (1: the table
--              does not take the change; error says why); @problem and @detail: the table is not there any more
-- Errors:      those of the table's own triggers when they end the transaction, and those that are not a row's
-- Transaction: joins the caller's, which is READ COMMITTED
-- Example:     EXEC mq.write_rows N'orders', @key, N'N', 0, @problem OUTPUT, @detail OUTPUT;
--
-- What todo says: D done, P looked for only, A active, F fails, L is given back, X dies, Y is ready again; Z:
-- nothing. Equal rows are one unit: as many of them are changed as there are entries, with TOP.
--
-- Statements on the table have the caller's rights, which do not reach the queue's tables: so entries go there and back in a
-- temporary table. Triggers of the table see that too: of what comes back only the notes count, and only for entries of this claim.

CREATE OR ALTER PROCEDURE mq.write_rows
    @name nvarchar(400),
    @key uniqueidentifier,
    @ready nvarchar(max),
    @skip bit,
    @problem varchar(200) OUTPUT,
    @detail nvarchar(2000) OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @shape char(1), @object_id int, @quoted nvarchar(600), @ident nvarchar(max);
    DECLARE @fields nvarchar(max), @match nvarchar(max), @status nvarchar(300), @value nvarchar(400);
    DECLARE @active nvarchar(max), @done nvarchar(max), @error nvarchar(max), @again nvarchar(max), @delete bit, @keyed bit = 0;
    DECLARE @list nvarchar(max);
    DECLARE @left nvarchar(max), @lock nvarchar(100), @change nvarchar(max), @row nvarchar(max), @rows nvarchar(max);
    DECLARE @find nvarchar(max), @count nvarchar(max), @write nvarchar(max), @check nvarchar(max);
    DECLARE @low bigint, @high bigint = 0, @some int, @flag int, @from nvarchar(max), @to nvarchar(max), @todo char(1);
    DECLARE @n int, @last int, @first bigint, @until bigint, @top int, @hash varbinary(32), @took int, @why nvarchar(max);
    DECLARE @units TABLE (
        n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, low bigint NOT NULL, high bigint NOT NULL, size int NOT NULL,
        hash varbinary(32)
    );
    CREATE TABLE #mq_entry (
        id bigint NOT NULL PRIMARY KEY, active bit NOT NULL, todo char(1) COLLATE Latin1_General_100_BIN2 NOT NULL,
        hit tinyint NOT NULL, refused bit NOT NULL, ident_hash varbinary(32) NOT NULL,
        ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL, row_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL, error nvarchar(max) COLLATE DATABASE_DEFAULT NULL
    );
    EXEC mq.polled_shape @name, @shape OUTPUT, @object_id OUTPUT, @quoted OUTPUT, @status OUTPUT, @value OUTPUT,
        @problem OUTPUT, @detail OUTPUT;
    IF @problem IS NOT NULL
        RETURN;
    SELECT @list = COALESCE(key_columns, ident_columns), @active = active_value, @done = done_value, @error = error_value, @again = ready_value,
        @delete = CASE on_complete WHEN 'delete' THEN 1 ELSE 0 END, @keyed = CASE WHEN key_columns IS NULL THEN 0 ELSE 1 END
    FROM mq.polled WHERE name = @name;
    SELECT @ident = mq.row_identity(@object_id, @list, NULL, 'json'), @fields = mq.row_identity(@object_id, @list, NULL, 'fields'),
        @match = mq.row_identity(@object_id, @list, NULL, 'match');
    SET @lock = CASE
        WHEN @shape IN ('b', 'd') THEN N''
        WHEN @skip = 1 THEN N' WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)'
        ELSE N' WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)'
    END;
    SET @row = N'e.row_json';
    IF @skip = 1
        SET @row = mq.row_json(@object_id, NULL, N't');
    SET @rows = CONCAT(N'FROM #mq_entry AS e
CROSS APPLY OPENJSON(e.ident) WITH (', @fields, N') AS r
INNER JOIN ', @quoted, N' AS t', @lock, N' ON ', @match, N'
WHERE e.id BETWEEN @low AND @high AND e.active = @flag AND HASHBYTES(''SHA2_256'', ', @ident, N') = e.ident_hash');

    WHILE 1 = 1
    BEGIN
        SET @low = @high + 1;
        SELECT @high = MAX(id), @some = COUNT(*)
        FROM (
            SELECT TOP (1000) id FROM mq.polled_row
            WHERE batch_key = @key AND id >= @low AND todo < 'Z'
            ORDER BY id
        ) AS c;
        IF @some = 0
            BREAK;
        DELETE FROM #mq_entry;
        INSERT INTO #mq_entry (id, active, todo, hit, refused, ident_hash, ident)
        SELECT id, active, todo, hit, refused, ident_hash, ident
        FROM mq.polled_row
        WHERE batch_key = @key AND id BETWEEN @low AND @high AND todo < 'Z';
        SET @flag = 0;
        WHILE @flag < 2
        BEGIN
            SET @from = CASE @flag WHEN 1 THEN @active ELSE @ready END;
            SET @left = CASE
                WHEN @status IS NULL THEN N'1 = 1' WHEN @from IS NULL THEN CONCAT(N't.', @status, N' IS NULL')
                ELSE CONCAT(N't.', @status, N' = ', REPLACE(@value, N'?', N'@from'))
            END;
            DELETE FROM @units;
            IF @keyed = 1
            BEGIN
                SET @find = CONCAT(N'UPDATE e
SET hit = CASE WHEN ', @left, N' THEN 1 ELSE 2 END, row_json = ', @row, N'
', @rows, N'
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);');
                EXEC sp_executesql @find, N'@low bigint, @high bigint, @flag int, @from nvarchar(max)', @low = @low, @high = @high,
                    @flag = @flag, @from = @from;
            END
            ELSE
            BEGIN
                INSERT INTO @units (low, high, size, hash)
                SELECT MIN(id), MIN(id), COUNT(*), ident_hash
                FROM #mq_entry
                WHERE active = @flag
                GROUP BY ident_hash;
                SET @count = CONCAT(N'DECLARE @took int, @json nvarchar(max);
SELECT @took = COUNT(*), @json = MAX(c.j)
FROM (SELECT TOP (@top) ', @row, N' AS j
', @rows, N' AND ', @left, N') AS c
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
UPDATE #mq_entry
SET hit = 1, row_json = @json
WHERE id IN (
    SELECT TOP (@took) id FROM #mq_entry WHERE active = @flag AND ident_hash = @hash ORDER BY id
);');
                SELECT @n = MIN(n) - 1, @last = MAX(n) FROM @units;
                WHILE @n < @last
                BEGIN
                    SET @n = @n + 1;
                    SELECT @first = low, @top = size, @hash = hash FROM @units WHERE n = @n;
                    EXEC sp_executesql @count, N'@low bigint, @high bigint, @flag int, @from nvarchar(max), @top int,
                        @hash varbinary(32)',
                        @low = @first, @high = @first, @flag = @flag, @from = @from, @top = @top, @hash = @hash;
                END;
            END;

            SET @todo = NULL;
            WHILE @status IS NOT NULL OR @delete = 1
            BEGIN
                SELECT @todo = MIN(todo) FROM #mq_entry WHERE active = @flag AND hit = 1 AND todo > COALESCE(@todo, ' ');
                IF @todo IS NULL
                    BREAK;
                -- Nothing is to be written where the status is what it is to be.
                IF @todo = 'P' OR (@todo = 'A' AND @flag = 1) OR (@todo IN ('F', 'L') AND @flag = 0)
                    OR (@status IS NULL AND @todo <> 'D')
                    CONTINUE;
                SET @to = CASE @todo WHEN 'D' THEN @done WHEN 'A' THEN @active WHEN 'X' THEN @error ELSE @again END;
                SET @change = CASE
                    WHEN @todo = 'D' AND @delete = 1 THEN N'DELETE TOP (@top) t'
                    ELSE CONCAT(N'UPDATE TOP (@top) t SET ', @status, N' = ', REPLACE(@value, N'?', N'@to'))
                END;
                SET @write = CONCAT(@change, N'
', @rows, N' AND ', @left, N' AND e.todo = @todo AND e.hit = 1
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
SET @took = @@ROWCOUNT;');
                DELETE FROM @units;
                IF @keyed = 1
                    INSERT INTO @units (low, high, size) VALUES (@low, @high, 1000);
                ELSE
                    INSERT INTO @units (low, high, size, hash)
                    SELECT MIN(id), MIN(id), COUNT(*), ident_hash
                    FROM #mq_entry
                    WHERE active = @flag AND todo = @todo AND hit = 1
                    GROUP BY ident_hash;
                SELECT @n = MIN(n) - 1, @last = MAX(n) FROM @units;
                WHILE @n < @last
                BEGIN
                    SET @n = @n + 1;
                    SELECT @first = low, @until = high, @top = size, @hash = hash FROM @units WHERE n = @n;
                    SET @why = NULL;
                    -- For this statement alone: what a constraint refuses must not spoil the transaction.
                    SET XACT_ABORT OFF;
                    BEGIN TRY
                        EXEC sp_executesql @write, N'@low bigint, @high bigint, @flag int, @from nvarchar(max), @to nvarchar(max),
                            @todo char(1), @top int, @took int OUTPUT',
                            @low = @first, @high = @until, @flag = @flag, @from = @from, @to = @to, @todo = @todo, @top = @top,
                            @took = @took OUTPUT;
                    END TRY
                    BEGIN CATCH
                        -- Not the row's: no lock, no memory, no room, no right, or the transaction is lost.
                        IF XACT_STATE() <> 1 OR ERROR_SEVERITY() > 16
                            OR ERROR_NUMBER() IN (229, 230, 297, 300, 601, 701, 1204, 1205, 1222, 3960, 3961, 8645)
                            THROW;
                        SELECT @why = ERROR_MESSAGE(), @took = 0;
                    END CATCH;
                    SET XACT_ABORT ON;
                    IF @why IS NOT NULL AND @keyed = 1 AND @first < @until
                    BEGIN
                        -- One of them is refused: one by one they tell which.
                        INSERT INTO @units (low, high, size)
                        SELECT id, id, 1 FROM #mq_entry WHERE active = @flag AND todo = @todo AND hit = 1 ORDER BY id;
                        SELECT @n = MIN(n), @last = MAX(n) FROM @units;
                        CONTINUE;
                    END;
                    IF @why IS NOT NULL
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
                -- The catalog shows triggers to the table's owner alone: it is always looked.
                IF @keyed = 1
                BEGIN
                    SET @check = CONCAT(N'UPDATE e
SET refused = 1, error = N''a trigger of the table left the row as it was''
', @rows, N' AND ', @left, N' AND e.todo = @todo AND e.hit = 1 AND e.refused = 0
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);');
                    EXEC sp_executesql @check, N'@low bigint, @high bigint, @flag int, @from nvarchar(max), @todo char(1)',
                        @low = @low, @high = @high, @flag = @flag, @from = @from, @todo = @todo;
                END;
            END;
            SET @flag = @flag + 1;
        END;
        UPDATE e
        SET hit = n.hit, refused = n.refused, row_json = CASE @skip WHEN 1 THEN n.row_json ELSE e.row_json END,
            error = CASE n.refused WHEN 1 THEN LEFT(n.error, 4000) ELSE e.error END
        FROM #mq_entry AS n
        INNER JOIN mq.polled_row AS e WITH (ROWLOCK) ON e.id = n.id
        WHERE e.batch_key = @key AND e.name = @name
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    END;
END;
GO
