-- pick_keyed: pick_rows for a table with a key, when done rows are deleted or change their status.
-- Arguments: @pieces (see pick_rows); the others as in pick_rows
-- Returns: @took, as pick_rows
--
-- The table is read with the caller's rights, which do not include the entries. So the rows go into a temporary table
-- first, and are compared with the entries there.
CREATE OR ALTER PROCEDURE mq_internal.pick_keyed
    @pieces mq.pieces READONLY, @name nvarchar(400), @key uniqueidentifier, @top int, @from_place bit,
    @now datetime2(7), @consumer nvarchar(400), @took int OUTPUT
AS
BEGIN
    DECLARE @status nvarchar(300), @ready nvarchar(max), @place nvarchar(max), @many int = @top * 2 + 50, @read int;
    DECLARE @scan nvarchar(max), @lock_rows nvarchar(max);
    CREATE TABLE #mq_row (
        n bigint NOT NULL PRIMARY KEY, hash varbinary(32) NOT NULL, ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL
    );
    CREATE TABLE #mq_got (
        n bigint NOT NULL PRIMARY KEY, key_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL,
        row_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL, place nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL
    );
    SELECT @status = status_column, @ready = ready_value FROM mq.polled WHERE name = @name;
    SELECT @place = place FROM mq.polled_place WHERE name = @name;
    SET @scan = mq_internal.fill(CONCAT(N'INSERT INTO #mq_row (n, hash, ident)
SELECT TOP (@many) ROW_NUMBER() OVER (ORDER BY {sort}), HASHBYTES(''SHA2_256'', i.ident), i.ident
FROM {table} AS t WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK{hint})
CROSS APPLY (SELECT {identity} AS ident) AS i
WHERE {is_ready}', CASE @from_place WHEN 1 THEN N' AND t.{order} >= {place}' END, N'
ORDER BY {sort}
OPTION (KEEPFIXED PLAN);'), @pieces);
    SET @lock_rows = mq_internal.fill(N'INSERT INTO #mq_got (n, key_json, row_json, place)
SELECT TOP (@top) c.n, {key}, {row}, {order_text}
FROM #mq_row AS c
CROSS APPLY OPENJSON(c.ident) WITH ({fields}) AS r
INNER JOIN {table} AS t WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON {match}
WHERE {is_ready} AND HASHBYTES(''SHA2_256'', {identity}) = c.hash
ORDER BY c.n
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);', @pieces);
    -- Scan without keeping locks first, then lock the free rows: otherwise each claim would lock rows that others have
    -- claimed. If claimed rows fill the first scan, a longer scan follows.
    WHILE 1 = 1
    BEGIN
        DELETE FROM #mq_row;
        DELETE FROM #mq_got;
        EXEC sp_executesql @scan, N'@many int, @ready nvarchar(max), @place nvarchar(max)', @many = @many, @ready = @ready,
            @place = @place;
        SELECT @read = COUNT(*) FROM #mq_row;
        -- Dead rows are at error_value: a dead row that is ready again was set back by hand and is claimed.
        DELETE c
        FROM #mq_row AS c
        WHERE EXISTS (
            SELECT * FROM mq.polled_row AS p WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_ident))
            WHERE p.name = @name AND p.ident_hash = c.hash AND (@status IS NULL OR p.state <> 'E')
        );
        EXEC sp_executesql @lock_rows, N'@top int, @ready nvarchar(max)', @top = @top, @ready = @ready;
        IF @read < @many OR (SELECT COUNT(*) FROM #mq_got) >= @top
            BREAK;
        SET @many = @many * 4;
    END;
    INSERT INTO mq.polled_row (batch_key, run_at, attempts, state, active, todo, hit, refused, copies, ident_hash, name, ident,
        key_json, row_json, place, consumer)
    SELECT TOP (@top) @key, @now, 1, 'A', 0, 'P', 1, 0, 0, HASHBYTES('SHA2_256', c.ident), @name, c.ident, g.key_json, g.row_json,
        g.place, @consumer
    FROM #mq_got AS g
    INNER JOIN #mq_row AS c ON c.n = g.n
    ORDER BY g.n;
    SET @took = @@ROWCOUNT;
END;
