-- pick_placed: pick_rows for a table without a status that keeps its rows: claim the rows after the low-water mark.
-- Arguments: @pieces (see pick_rows); the others as in pick_rows
-- Returns: @took, as pick_rows
-- Transaction: waits for transactions that have locked these rows
CREATE OR ALTER PROCEDURE mq_internal.pick_placed
    @pieces mq.pieces READONLY, @name nvarchar(400), @key uniqueidentifier, @top int, @now datetime2(7),
    @consumer nvarchar(400), @took int OUTPUT
AS
BEGIN
    DECLARE @place nvarchar(max), @hash varbinary(32), @copies bigint, @settled nvarchar(4000), @statement nvarchar(max);
    DECLARE @late int, @seen datetime2(7), @before datetime2(7);
    CREATE TABLE #mq_row (
        n bigint NOT NULL PRIMARY KEY, copies bigint NOT NULL, hash varbinary(32) NOT NULL,
        ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL, key_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL,
        row_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL, place nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL
    );
    SET @took = 0;
    SELECT @late = late_seconds FROM mq.polled WHERE name = @name;
    -- Rows may be claimed up to the highest order value of late_seconds ago. Delete marks in the future: the clock was set
    -- back, and they would stop all claims until it catches up.
    DELETE FROM mq.polled_mark WHERE name = @name AND seen_at > @now;
    SELECT @seen = MAX(seen_at) FROM mq.polled_mark WHERE name = @name;
    IF @late = 0 OR @seen IS NULL OR @seen <= DATEADD(SECOND, -CASE WHEN @late > 10 THEN @late / 10 ELSE 1 END, @now)
    BEGIN
        -- Uncommitted rows are skipped.
        SET @statement = mq_internal.fill(N'SELECT TOP (1) @settled = {order_text}
FROM {table} AS t WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK{hint})
ORDER BY t.{order} DESC
OPTION (KEEPFIXED PLAN);', @pieces);
        EXEC sp_executesql @statement, N'@settled nvarchar(4000) OUTPUT', @settled = @settled OUTPUT;
        IF @late > 0 AND @settled IS NOT NULL
            INSERT INTO mq.polled_mark (name, seen_at, place) VALUES (@name, @now, @settled);
    END;
    IF @late > 0
        SET @settled = NULL;
    SELECT TOP (1) @settled = place, @before = seen_at
    FROM mq.polled_mark
    WHERE @late > 0 AND name = @name AND seen_at <= DATEADD(SECOND, -@late, @now)
    ORDER BY seen_at DESC;
    IF @before IS NOT NULL
        DELETE FROM mq.polled_mark WHERE name = @name AND seen_at < @before;
    IF @settled IS NULL
        RETURN;
    SELECT @place = place, @hash = place_hash, @copies = copies FROM mq.polled_place WHERE name = @name;
    -- Find the last order value first: then only rows up to it are sorted.
    SET @statement = mq_internal.fill(CONCAT(N'DECLARE @high nvarchar(max);
SELECT TOP (1) @high = y.high
FROM (
    SELECT TOP (@top) t.{order} AS o, {order_text} AS high
    FROM {table} AS t WITH (ROWLOCK{hint})
    WHERE t.{order} <= {settled}', CASE WHEN @place IS NOT NULL THEN N' AND t.{order} > {place}' END, N'
    ORDER BY t.{order}
) AS y
ORDER BY y.o DESC
OPTION (KEEPFIXED PLAN);
SET @high = COALESCE(@high, @settled);
INSERT INTO #mq_row (n, copies, hash, ident, key_json, row_json, place)
SELECT TOP (@top) ROW_NUMBER() OVER (ORDER BY x.o, x.hash, x.copy), x.copy, x.hash, x.ident, x.key_json, x.row_json, x.place
FROM (
    SELECT t.{order} AS o, h.hash, i.ident, {key} AS key_json, {row} AS row_json, {order_text} AS place,
        ROW_NUMBER() OVER (PARTITION BY t.{order}, h.hash ORDER BY (SELECT NULL)) AS copy,
        CASE WHEN t.{order} = {place} THEN 1 ELSE 0 END AS begun
    FROM {table} AS t WITH (ROWLOCK{hint})
    CROSS APPLY (SELECT {identity} AS ident) AS i
    CROSS APPLY (SELECT HASHBYTES(''SHA2_256'', i.ident) AS hash) AS h
    WHERE t.{order} <= {high}', CASE WHEN @place IS NOT NULL THEN N' AND t.{order} >= {place}' END, N'
) AS x
WHERE x.begun = 0 OR x.hash > @hash OR (x.hash = @hash AND x.copy > @copies)
ORDER BY x.o, x.hash, x.copy
OPTION (KEEPFIXED PLAN);'), @pieces);
    EXEC sp_executesql @statement, N'@top int, @place nvarchar(max), @hash varbinary(32), @copies bigint, @settled nvarchar(4000)',
        @top = @top, @place = @place, @hash = @hash, @copies = @copies, @settled = @settled;
    INSERT INTO mq.polled_row (batch_key, run_at, attempts, state, active, todo, hit, refused, copies, ident_hash, name, ident,
        key_json, row_json, place, consumer)
    SELECT TOP (@top) @key, @now, 1, 'A', 0, 'P', 1, 0, copies, HASHBYTES('SHA2_256', ident), @name, ident, key_json, row_json,
        place, @consumer
    FROM #mq_row
    ORDER BY n;
    SET @took = @@ROWCOUNT;
END;
