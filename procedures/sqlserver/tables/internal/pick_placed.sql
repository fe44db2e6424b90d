-- pick_placed: pick_rows for a table without a status that keeps its rows: claim the rows after the low-water mark.
-- Arguments: @pieces (see pick_rows); the others as in pick_rows
-- Returns: @took, as pick_rows
-- Transaction: waits for transactions that have locked these rows
CREATE OR ALTER PROCEDURE mq_internal.pick_placed
    @pieces mq.pieces READONLY, @name nvarchar(400), @key uniqueidentifier, @top int, @now datetime2(7),
    @reader nvarchar(400), @took int OUTPUT
AS
BEGIN
    DECLARE @place nvarchar(max), @hash varbinary(32), @copies bigint, @settled nvarchar(4000), @statement nvarchar(max);
    CREATE TABLE #mq_row (
        n bigint NOT NULL PRIMARY KEY, copies bigint NOT NULL, hash varbinary(32) NOT NULL,
        ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL, key_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL,
        row_json nvarchar(max) COLLATE DATABASE_DEFAULT NULL, place nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL
    );
    SET @took = 0;
    EXEC mq_internal.settled_place @pieces, @name, @now, @settled OUTPUT;
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
        key_json, row_json, place, reader)
    SELECT TOP (@top) @key, @now, 1, 'A', 0, 'P', 1, 0, copies, HASHBYTES('SHA2_256', ident), @name, ident, key_json, row_json,
        place, @reader
    FROM #mq_row
    ORDER BY n;
    SET @took = @@ROWCOUNT;
END;
