-- find_entries: find the rows of the entries in #mq_entry, for write_rows.
-- Arguments: @pieces (of the table, with rows and from: see write_rows), @keyed (1: the table has a key), @flag (only
--     entries with this active), @from (the status of their rows: parameter of the piece from), @low and @high (range
--     of entry ids)
-- Returns: in #mq_entry: hit (1: found; 2: found with another status; 0: not found) and row_json
CREATE OR ALTER PROCEDURE mq_internal.find_entries
    @pieces mq.pieces READONLY, @keyed bit, @flag int, @from nvarchar(max), @low bigint, @high bigint
AS
BEGIN
    DECLARE @statement nvarchar(max), @n int = 0, @last int, @first bigint, @top int, @hash varbinary(32);
    DECLARE @units TABLE (n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, first bigint NOT NULL, size int NOT NULL, hash varbinary(32));
    IF @keyed = 1
    BEGIN
        SET @statement = mq_internal.fill(N'UPDATE e
SET hit = CASE WHEN {from} THEN 1 ELSE 2 END, row_json = {row}
{rows}
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);', @pieces);
        EXEC sp_executesql @statement, N'@low bigint, @high bigint, @flag int, @from nvarchar(max)', @low = @low, @high = @high,
            @flag = @flag, @from = @from;
        RETURN;
    END;
    SET @statement = mq_internal.fill(N'DECLARE @took int, @json nvarchar(max);
SELECT @took = COUNT(*), @json = MAX(c.j)
FROM (SELECT TOP (@top) {row} AS j
{rows} AND {from}) AS c
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
UPDATE #mq_entry
SET hit = 1, row_json = @json
WHERE id IN (
    SELECT TOP (@took) id FROM #mq_entry WHERE active = @flag AND ident_hash = @hash ORDER BY id
);', @pieces);
    INSERT INTO @units (first, size, hash)
    SELECT MIN(id), COUNT(*), ident_hash
    FROM #mq_entry
    WHERE active = @flag
    GROUP BY ident_hash;
    SET @last = @@ROWCOUNT;
    WHILE @n < @last
    BEGIN
        SET @n = @n + 1;
        SELECT @first = first, @top = size, @hash = hash FROM @units WHERE n = @n;
        EXEC sp_executesql @statement, N'@low bigint, @high bigint, @flag int, @from nvarchar(max), @top int, @hash varbinary(32)',
            @low = @first, @high = @first, @flag = @flag, @from = @from, @top = @top, @hash = @hash;
    END;
END;
