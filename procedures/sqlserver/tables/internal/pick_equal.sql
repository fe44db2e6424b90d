-- pick_equal: pick_rows for a table without a key, when done rows are deleted or change their status.
-- Arguments: @pieces (see pick_rows); the others as in pick_rows
-- Returns: @took, as pick_rows
--
-- The table is read with the caller's rights, which do not include the entries. So the rows go into a temporary table
-- first, and are compared with the entries there. No lock is kept: changes by others are detected when the status is
-- written.
--
-- Finishing a row deletes its entry. If the row is then no longer ready, entries are read before rows. If a failed row
-- becomes ready again, rows are read before entries. An old reading only makes the claim smaller.
CREATE OR ALTER PROCEDURE mq_internal.pick_equal
    @pieces mq.pieces READONLY, @name nvarchar(400), @key uniqueidentifier, @top int, @now datetime2(7),
    @consumer nvarchar(400), @took int OUTPUT
AS
BEGIN
    DECLARE @status nvarchar(300), @ready nvarchar(max), @active nvarchar(max), @many int, @statement nvarchar(max), @step int = 0;
    DECLARE @taken TABLE (hash varbinary(32) NOT NULL PRIMARY KEY, copies bigint NOT NULL);
    CREATE TABLE #mq_row (
        n bigint NOT NULL PRIMARY KEY, hash varbinary(32) NOT NULL, ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
        key_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL, row_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL
    );
    SELECT @status = status_column, @ready = ready_value, @active = active_value FROM mq.polled WHERE name = @name;
    SELECT @many = @top + COUNT(*) FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_ident))
    WHERE name = @name AND active = 0 AND (state <> 'E' OR @status IS NULL);
    SET @statement = mq_internal.fill(N'INSERT INTO #mq_row (n, hash, ident, key_json, row_json)
SELECT TOP (@many) ROW_NUMBER() OVER (ORDER BY {sort}), HASHBYTES(''SHA2_256'', i.ident), i.ident, {key}, {row}
FROM {table} AS t WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK{hint})
CROSS APPLY (SELECT {identity} AS ident) AS i
WHERE {is_ready}
ORDER BY {sort}
OPTION (KEEPFIXED PLAN);', @pieces);
    WHILE @step < 2
    BEGIN
        SET @step = @step + 1;
        IF @step = CASE WHEN @active IS NULL THEN 1 ELSE 2 END
            INSERT INTO @taken (hash, copies)
            SELECT ident_hash, COUNT(*) FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_ident))
            WHERE name = @name AND active = 0 AND (state <> 'E' OR @status IS NULL)
            GROUP BY ident_hash;
        ELSE
            EXEC sp_executesql @statement, N'@many int, @ready nvarchar(max)', @many = @many, @ready = @ready;
    END;
    INSERT INTO mq.polled_row (batch_key, run_at, attempts, state, active, todo, hit, refused, copies, ident_hash, name, ident,
        key_json, row_json, place, consumer)
    SELECT TOP (@top) @key, @now, 1, 'A', 0, 'P', 1, 0, 0, HASHBYTES('SHA2_256', x.ident), @name, x.ident, x.key_json, x.row_json,
        NULL, @consumer
    FROM (
        SELECT n, hash, ident, key_json, row_json, ROW_NUMBER() OVER (PARTITION BY hash ORDER BY n) AS copy FROM #mq_row
    ) AS x
    LEFT JOIN @taken AS k ON k.hash = x.hash
    WHERE x.copy > COALESCE(k.copies, 0)
    ORDER BY x.n;
    SET @took = @@ROWCOUNT;
END;
