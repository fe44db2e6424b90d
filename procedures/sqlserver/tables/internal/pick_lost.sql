-- pick_lost: claim rows at active_value that have no entry.
-- Arguments: @name (of the polling table; the caller has locked its low-water mark), @key (of the batch), @top (1 to
--     1,000), @now, @consumer
-- Returns: @took: the number of rows claimed
--
-- The key or content of such a row changed while it was claimed, or its entry was lost. A claim takes only as many rows
-- as there are rows in excess of entries: while the old entry exists, a handler may still be working on the row.
-- Entries are counted before rows: rows finished in between make the difference smaller.
CREATE OR ALTER PROCEDURE mq_internal.pick_lost
    @name nvarchar(400), @key uniqueidentifier, @top int, @now datetime2(7), @consumer nvarchar(400), @took int OUTPUT
AS
BEGIN
    DECLARE @shape char(1), @object_id int, @quoted nvarchar(600), @status nvarchar(300), @value nvarchar(400);
    DECLARE @problem varchar(200), @detail nvarchar(2000), @active nvarchar(max), @statement nvarchar(max);
    DECLARE @held int, @standing int, @many int;
    DECLARE @pieces mq.pieces;
    CREATE TABLE #mq_orphan (
        n bigint NOT NULL PRIMARY KEY, hash varbinary(32) NOT NULL, ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
        key_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL, row_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL
    );
    CREATE TABLE #mq_found (
        n bigint NOT NULL PRIMARY KEY, ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
        key_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL, row_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL
    );
    SET @took = 0;
    SELECT @active = active_value FROM mq.polled WHERE name = @name;
    IF @active IS NULL
        RETURN;
    EXEC mq_internal.polled_shape @name, @shape OUTPUT, @object_id OUTPUT, @quoted OUTPUT, @status OUTPUT, @value OUTPUT,
        @problem OUTPUT, @detail OUTPUT;
    IF @problem IS NOT NULL
        EXEC mq_internal.raise_error @problem, @detail;
    SELECT @held = COUNT(*)
    FROM mq.polled_row WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (polled_row_due))
    WHERE name = @name AND state IN ('A', 'N') AND active = 1;
    SET @many = @held + @top;
    INSERT INTO @pieces (name, piece) SELECT name, piece FROM mq_internal.polled_pieces(@name, 1);
    INSERT INTO @pieces (name, piece) VALUES ('hint', mq_internal.index_hint(@object_id, @status));
    SET @statement = mq_internal.fill(N'SELECT @standing = COUNT(*)
FROM (SELECT TOP (@many) 1 AS one FROM {table} AS t WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK{hint}) WHERE {is_active}) AS x;', @pieces);
    EXEC sp_executesql @statement, N'@many int, @active nvarchar(max), @standing int OUTPUT', @many = @many, @active = @active,
        @standing = @standing OUTPUT;
    IF @standing <= @held
        RETURN;
    SET @statement = mq_internal.fill(N'INSERT INTO #mq_orphan (n, hash, ident, key_json, row_json)
SELECT TOP (@many) ROW_NUMBER() OVER (ORDER BY (SELECT NULL)), HASHBYTES(''SHA2_256'', i.ident), i.ident, {key}, {row}
FROM {table} AS t WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK{hint})
CROSS APPLY (SELECT {identity} AS ident) AS i
WHERE {is_active};', @pieces);
    EXEC sp_executesql @statement, N'@many int, @active nvarchar(max)', @many = @many, @active = @active;
    -- Of equal rows, remove as many as have entries.
    DELETE o
    FROM #mq_orphan AS o
    INNER JOIN (SELECT n, hash, ROW_NUMBER() OVER (PARTITION BY hash ORDER BY n) AS copy FROM #mq_orphan) AS c ON c.n = o.n
    WHERE c.copy <= (
        SELECT COUNT(*) FROM mq.polled_row AS p WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_ident))
        WHERE p.name = @name AND p.ident_hash = c.hash AND p.state <> 'E' AND (p.active = 1 OR @shape = 'a')
    );
    SET @standing = CASE WHEN @standing - @held < @top THEN @standing - @held ELSE @top END;
    IF @shape = 'a'
    BEGIN
        SET @statement = mq_internal.fill(N'INSERT INTO #mq_found (n, ident, key_json, row_json)
SELECT TOP (@top) c.n, c.ident, {key}, {row}
FROM #mq_orphan AS c
CROSS APPLY OPENJSON(c.ident) WITH ({fields}) AS r
INNER JOIN {table} AS t WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON {match}
WHERE {is_active} AND HASHBYTES(''SHA2_256'', {identity}) = c.hash
ORDER BY c.n
OPTION (FORCE ORDER, LOOP JOIN);', @pieces);
        EXEC sp_executesql @statement, N'@top int, @active nvarchar(max)', @top = @standing, @active = @active;
    END
    ELSE
        INSERT INTO #mq_found (n, ident, key_json, row_json)
        SELECT TOP (@standing) n, ident, key_json, row_json FROM #mq_orphan ORDER BY n;
    INSERT INTO mq.polled_row (batch_key, run_at, attempts, state, active, hit, refused, copies, ident_hash, name, ident, key_json,
        row_json, consumer)
    SELECT TOP (@standing) @key, @now, 1, 'A', 1, 0, 0, 0, HASHBYTES('SHA2_256', ident), @name, ident, key_json, row_json, @consumer
    FROM #mq_found
    ORDER BY n;
    SET @took = @@ROWCOUNT;
END;
