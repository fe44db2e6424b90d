-- pick_rows: make entries for rows of an adopted table that nobody has claimed yet, in their order.
-- Arguments:   @name (the adopted table, whose place the caller has locked), @key (the batch), @top (at most so many; 1 to 1,000),
--              @from_place (1: begin where the last claim ended), @now, @reader
-- Returns:     @took: how many entries there are more, with todo P; their order value and number among their equals in place
--              and copies
-- Errors:      50005 not_found, 50006 unsuitable_table, when the table, a column or the index is not there any more
-- Transaction: joins the caller's, which is READ COMMITTED; passes over rows that others have locked
-- Example:     EXEC mq.pick_rows N'orders', @key, 100, 0, @now, N'worker-1', @took OUTPUT;
--
-- The table is read with the caller's rights, which do not reach the entries: rows come here in a temporary table, and are then
-- compared with the entries.

CREATE OR ALTER PROCEDURE mq.pick_rows
    @name nvarchar(400),
    @key uniqueidentifier,
    @top int,
    @from_place bit,
    @now datetime2(7),
    @reader nvarchar(400),
    @took int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @shape char(1), @object_id int, @quoted nvarchar(600), @columns nvarchar(max), @ident nvarchar(max);
    DECLARE @status nvarchar(300), @value nvarchar(400);
    DECLARE @problem varchar(200), @detail nvarchar(2000), @keys nvarchar(4000), @by nvarchar(4000), @list nvarchar(max);
    DECLARE @fields nvarchar(max), @match nvarchar(max), @got int, @read int, @wanted nvarchar(max);
    DECLARE @ready nvarchar(max), @active nvarchar(max), @place nvarchar(max), @hash varbinary(32), @copies bigint;
    DECLARE @of_order nvarchar(800), @placed nvarchar(800), @hint nvarchar(300), @json nvarchar(max), @row nvarchar(max);
    DECLARE @left nvarchar(max);
    DECLARE @sort nvarchar(max) = N'', @behind nvarchar(max) = N'', @beyond nvarchar(max) = N'';
    DECLARE @column nvarchar(300), @n int = 1, @many int, @settled nvarchar(4000);
    DECLARE @statement nvarchar(max), @lock_rows nvarchar(max);
    DECLARE @taken TABLE (hash varbinary(32) NOT NULL PRIMARY KEY, copies bigint NOT NULL);
    CREATE TABLE #mq_row (
        n bigint NOT NULL PRIMARY KEY, copies bigint NOT NULL, hash varbinary(32) NOT NULL,
        ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL, key_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL, row_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL,
        place nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL
    );
    CREATE TABLE #mq_got (
        n bigint NOT NULL PRIMARY KEY, key_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL, row_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL,
        place nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL
    );
    SET @took = 0;
    EXEC mq.polled_shape @name, @shape OUTPUT, @object_id OUTPUT, @quoted OUTPUT, @status OUTPUT, @value OUTPUT,
        @problem OUTPUT, @detail OUTPUT;
    IF @problem IS NOT NULL
        EXEC mq.raise_error @problem, @detail;
    SELECT @keys = key_columns, @columns = COALESCE(key_columns, ident_columns), @by = order_column, @ready = ready_value, @active = active_value FROM mq.polled WHERE name = @name;
    SELECT @ident = mq.row_identity(@object_id, @columns, NULL, 'json'),
        @fields = mq.row_identity(@object_id, @columns, NULL, 'fields'),
        @match = mq.row_identity(@object_id, @columns, NULL, 'match'),
        @json = mq.row_json(@object_id, COALESCE(@keys, @columns), N't'), @row = mq.row_json(@object_id, NULL, N't');
    SELECT @place = place, @hash = place_hash, @copies = copies FROM mq.polled_place WHERE name = @name;
    IF @by IS NULL AND (SELECT COUNT(*) FROM mq.columns_of(@object_id, @keys) WHERE @keys IS NOT NULL) = 1
        SET @by = @keys;
    SET @list = COALESCE(@by, @keys);
    SET @wanted = CONCAT(@status + CASE WHEN @list IS NOT NULL THEN N', ' ELSE N'' END, @list);
    SET @hint = mq.claim_index(@object_id, @wanted);
    IF @hint IS NULL AND @shape <> 'f'
    BEGIN
        SET @detail = CONCAT(@quoted, N': claims would read the whole table, it needs: CREATE INDEX ',
            QUOTENAME(LEFT(CAST(OBJECT_NAME(@object_id) AS nvarchar(128)), 110) + N'_claim'), N' ON ', @quoted, N' (', @wanted, N')');
        EXEC mq.raise_error 'unsuitable_table', @detail;
    END;
    SET @hint = COALESCE(@hint, N'');
    SELECT @of_order = REPLACE(written, N'?', N't.' + quoted), @placed = read_back
    FROM mq.column_texts(@object_id, @by) WHERE @by IS NOT NULL;
    SET @of_order = COALESCE(@of_order, N'CAST(NULL AS nvarchar(max))');
    WHILE @list IS NOT NULL
    BEGIN
        SET @column = NULL;
        SELECT @column = quoted FROM mq.columns_of(@object_id, @list) WHERE n = @n;
        IF @column IS NULL
            BREAK;
        SELECT @sort = CONCAT(@sort, CASE @n WHEN 1 THEN N'' ELSE N', ' END, N't.', @column), @n = @n + 1;
    END;
    SET @left = CASE
        WHEN @status IS NULL THEN N'1 = 1' WHEN @ready IS NULL THEN CONCAT(N't.', @status, N' IS NULL')
        ELSE CONCAT(N't.', @status, N' = ', REPLACE(@value, N'?', N'@ready'))
    END;

    IF @shape IN ('a', 'e')
    BEGIN
        IF @from_place = 1
            SET @behind = CONCAT(N' AND t.', @by, N' >= ', REPLACE(@placed, N'?', N'@place'));
        SET @statement = CONCAT(N'INSERT INTO #mq_row (n, copies, hash, ident)
SELECT TOP (@many) ROW_NUMBER() OVER (ORDER BY ', @sort, N'), 0, HASHBYTES(''SHA2_256'', i.ident), i.ident
FROM ', @quoted, N' AS t WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK', @hint, N')
CROSS APPLY (SELECT ', @ident, N' AS ident) AS i
WHERE ', @left, @behind, N'
ORDER BY ', @sort, N'
OPTION (KEEPFIXED PLAN);');
        SET @lock_rows = CONCAT(N'INSERT INTO #mq_got (n, key_json, row_json, place)
SELECT TOP (@top) c.n, ', @json, N', ', @row, N', ', @of_order, N'
FROM #mq_row AS c
CROSS APPLY OPENJSON(c.ident) WITH (', @fields, N') AS r
INNER JOIN ', @quoted, N' AS t WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
    ON ', @match, N'
WHERE ', @left, N' AND HASHBYTES(''SHA2_256'', ', @ident, N') = c.hash
ORDER BY c.n
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);');
        -- First without keeping a lock, then what is free: else each claim would lock what others are at work on. What they are at
        -- work on may fill the first look: then a longer one.
        SET @many = @top * 2 + 50;
        WHILE 1 = 1
        BEGIN
            DELETE FROM #mq_row;
            DELETE FROM #mq_got;
            EXEC sp_executesql @statement, N'@many int, @ready nvarchar(max), @place nvarchar(max)', @many = @many, @ready = @ready,
                @place = @place;
            SELECT @read = COUNT(*) FROM #mq_row;
            -- With a status the dead have one of their own: whoever makes such a row ready again by hand wants it claimed.
            DELETE c
            FROM #mq_row AS c
            WHERE EXISTS (
                SELECT * FROM mq.polled_row AS p
                WHERE p.name = @name AND p.ident_hash = c.hash AND (@status IS NULL OR p.state <> 'E')
            );
            EXEC sp_executesql @lock_rows, N'@top int, @ready nvarchar(max)', @top = @top, @ready = @ready;
            SELECT @got = COUNT(*) FROM #mq_got;
            IF @got >= @top OR @read < @many
                BREAK;
            SET @many = @many * 4;
        END;
        INSERT INTO mq.polled_row (batch_key, run_at, attempts, state, active, todo, hit, refused, copies, ident_hash, name, ident,
            key_json, row_json, place, reader)
        SELECT TOP (@top) @key, @now, 1, 'A', 0, 'P', 1, 0, 0, HASHBYTES('SHA2_256', c.ident), @name, c.ident, g.key_json, g.row_json,
            g.place, @reader
        FROM #mq_got AS g
        INNER JOIN #mq_row AS c ON c.n = g.n
        ORDER BY g.n;
        SET @took = @@ROWCOUNT;
    END
    ELSE IF @shape IN ('c', 'f')
    BEGIN
        SELECT @many = @top + COUNT(*) FROM mq.polled_row
        WHERE name = @name AND active = 0 AND (state <> 'E' OR @status IS NULL);
        IF @sort = N''
            SET @sort = N'(SELECT NULL)';
        SET @statement = CONCAT(N'INSERT INTO #mq_row (n, copies, hash, ident, key_json, row_json)
SELECT TOP (@many) ROW_NUMBER() OVER (ORDER BY ', @sort, N'), 0, HASHBYTES(''SHA2_256'', i.ident), i.ident, ', @json, N', ', @row, N'
FROM ', @quoted, N' AS t WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK', @hint, N')
CROSS APPLY (SELECT ', @ident, N' AS ident) AS i
WHERE ', @left, N'
ORDER BY ', @sort, N'
OPTION (KEEPFIXED PLAN);');
        -- Who finishes a row takes its entry away: where that makes the row no longer ready, entries are read first; where a row that
        -- has failed becomes ready again, rows are. What is read too early then only makes the claim smaller. No lock is kept: what
        -- others change in the meantime is found out when the status is written.
        IF @active IS NULL
            INSERT INTO @taken (hash, copies)
            SELECT ident_hash, COUNT(*) FROM mq.polled_row
            WHERE name = @name AND active = 0 AND (state <> 'E' OR @status IS NULL)
            GROUP BY ident_hash;
        EXEC sp_executesql @statement, N'@many int, @ready nvarchar(max)', @many = @many, @ready = @ready;
        IF @active IS NOT NULL
            INSERT INTO @taken (hash, copies)
            SELECT ident_hash, COUNT(*) FROM mq.polled_row
            WHERE name = @name AND active = 0 AND (state <> 'E' OR @status IS NULL)
            GROUP BY ident_hash;
        INSERT INTO mq.polled_row (batch_key, run_at, attempts, state, active, todo, hit, refused, copies, ident_hash, name, ident,
            key_json, row_json, place, reader)
        SELECT TOP (@top) @key, @now, 1, 'A', 0, 'P', 1, 0, 0, HASHBYTES('SHA2_256', x.ident), @name, x.ident, x.key_json, x.row_json,
            NULL, @reader
        FROM (
            SELECT n, hash, ident, key_json, row_json, ROW_NUMBER() OVER (PARTITION BY hash ORDER BY n) AS copy FROM #mq_row
        ) AS x
        LEFT JOIN @taken AS k ON k.hash = x.hash
        WHERE x.copy > COALESCE(k.copies, 0)
        ORDER BY x.n;
        SET @took = @@ROWCOUNT;
    END
    ELSE
    BEGIN
        EXEC mq.settled_place @name, @quoted, @by, @of_order, @hint, @now, @settled OUTPUT;
        IF @settled IS NULL
            RETURN;
        IF @place IS NOT NULL
            SELECT @behind = CONCAT(N' AND t.', @by, N' >= ', REPLACE(@placed, N'?', N'@place')),
                @beyond = CONCAT(N' AND t.', @by, N' > ', REPLACE(@placed, N'?', N'@place'));
        -- So that no more than the rows of these order values are sorted: first up to which one.
        SET @statement = CONCAT(N'DECLARE @high nvarchar(max);
SELECT TOP (1) @high = y.high
FROM (
    SELECT TOP (@top) t.', @by, N' AS o, ', @of_order, N' AS high
    FROM ', @quoted, N' AS t WITH (ROWLOCK', @hint, N')
    WHERE t.', @by, N' <= ', REPLACE(@placed, N'?', N'@settled'), @beyond, N'
    ORDER BY t.', @by, N'
) AS y
ORDER BY y.o DESC
OPTION (KEEPFIXED PLAN);
SET @high = COALESCE(@high, @settled);
INSERT INTO #mq_row (n, copies, hash, ident, key_json, row_json, place)
SELECT TOP (@top) ROW_NUMBER() OVER (ORDER BY x.o, x.hash, x.copy), x.copy, x.hash, x.ident, x.key_json, x.row_json, x.place
FROM (
    SELECT t.', @by, N' AS o, h.hash, i.ident, ', @json, N' AS key_json, ', @row, N' AS row_json, ', @of_order, N' AS place,
        ROW_NUMBER() OVER (PARTITION BY t.', @by, N', h.hash ORDER BY (SELECT NULL)) AS copy,
        CASE WHEN t.', @by, N' = ', REPLACE(@placed, N'?', N'@place'), N' THEN 1 ELSE 0 END AS begun
    FROM ', @quoted, N' AS t WITH (ROWLOCK', @hint, N')
    CROSS APPLY (SELECT ', @ident, N' AS ident) AS i
    CROSS APPLY (SELECT HASHBYTES(''SHA2_256'', i.ident) AS hash) AS h
    WHERE t.', @by, N' <= ', REPLACE(@placed, N'?', N'@high'), @behind, N'
) AS x
WHERE x.begun = 0 OR x.hash > @hash OR (x.hash = @hash AND x.copy > @copies)
ORDER BY x.o, x.hash, x.copy
OPTION (KEEPFIXED PLAN);');
        EXEC sp_executesql @statement, N'@top int, @place nvarchar(max), @hash varbinary(32), @copies bigint, @settled nvarchar(4000)',
            @top = @top, @place = @place, @hash = @hash, @copies = @copies, @settled = @settled;
        INSERT INTO mq.polled_row (batch_key, run_at, attempts, state, active, todo, hit, refused, copies, ident_hash, name, ident,
            key_json, row_json, place, reader)
        SELECT TOP (@top) @key, @now, 1, 'A', 0, 'P', 1, 0, copies, HASHBYTES('SHA2_256', ident), @name, ident, key_json, row_json,
            place, @reader
        FROM #mq_row
        ORDER BY n;
        SET @took = @@ROWCOUNT;
    END;
    -- Dead once, and made ready again by hand.
    IF @shape = 'a' AND @took > 0
        DELETE FROM mq.polled_row
        WHERE name = @name AND state = 'E'
            AND ident_hash IN (SELECT ident_hash FROM mq.polled_row WHERE batch_key = @key AND todo = 'P');
END;
GO
