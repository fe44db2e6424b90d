-- column_texts: return how the columns of a table are written as text, and read back exactly.
-- Arguments: @object_id, @list (columns; NULL: all)
-- Returns: n, name, quoted, type, nullable, column_id; changes (1: the server changes the column with each update);
--     of_text (1: a text); written and read_back: expressions in which ? stands for the column, or for its text; NULL
--     for types whose values cannot be compared
--
-- Times are written in forms that every session language reads alike. A text is converted with its column's collation:
-- its code page may differ from the database's.
CREATE OR ALTER FUNCTION mq_internal.column_texts (@object_id int, @list nvarchar(max))
RETURNS TABLE
AS
RETURN
    SELECT c.n, c.name, c.quoted, c.type, c.nullable, c.column_id,
        CASE WHEN s.is_computed = 1 OR s.generated_always_type <> 0 OR c.type = N'timestamp' THEN 1 ELSE 0 END AS changes,
        CASE WHEN c.type IN (N'char', N'varchar', N'nchar', N'nvarchar') THEN 1 ELSE 0 END AS of_text,
        CASE
            WHEN c.type IN (
                N'bit', N'tinyint', N'smallint', N'int', N'bigint', N'decimal', N'numeric', N'time', N'uniqueidentifier'
            ) THEN N'CAST(? AS nvarchar(41))'
            WHEN c.type IN (N'money', N'smallmoney') THEN N'CAST(CAST(? AS decimal(19, 4)) AS nvarchar(41))'
            WHEN c.type IN (N'float', N'real') THEN N'CONVERT(nvarchar(41), ?, 3)'
            WHEN c.type = N'date' THEN N'CONVERT(nvarchar(41), ?, 23)'
            WHEN c.type IN (N'smalldatetime', N'datetime', N'datetime2', N'datetimeoffset') THEN N'CONVERT(nvarchar(41), ?, 126)'
            WHEN c.type IN (N'binary', N'varbinary') THEN N'CONVERT(nvarchar(max), ?, 2)'
            WHEN c.type IN (N'char', N'varchar', N'nchar', N'nvarchar')
                THEN N'CAST(? AS nvarchar(max)) COLLATE Latin1_General_100_BIN2'
        END AS written,
        CASE
            WHEN c.type IN (
                N'bit', N'tinyint', N'smallint', N'int', N'bigint', N'uniqueidentifier', N'money', N'smallmoney', N'float', N'real'
            ) THEN CONCAT(N'TRY_CONVERT(', c.type, N', ?)')
            WHEN c.type IN (N'decimal', N'numeric')
                THEN CONCAT(N'TRY_CONVERT(', c.type, N'(', s.[precision], N', ', s.scale, N'), ?)')
            WHEN c.type = N'time' THEN CONCAT(N'TRY_CONVERT(time(', s.scale, N'), ?)')
            WHEN c.type = N'date' THEN N'TRY_CONVERT(date, ?, 23)'
            WHEN c.type IN (N'smalldatetime', N'datetime') THEN CONCAT(N'TRY_CONVERT(', c.type, N', ?, 126)')
            WHEN c.type IN (N'datetime2', N'datetimeoffset') THEN CONCAT(N'TRY_CONVERT(', c.type, N'(', s.scale, N'), ?, 126)')
            WHEN c.type IN (N'binary', N'varbinary') THEN CONCAT(N'CONVERT(', c.type, N'(', w.width, N'), ?, 2)')
            WHEN c.type IN (N'char', N'varchar', N'nchar', N'nvarchar')
                THEN CONCAT(N'CAST(? COLLATE ', s.collation_name, N' AS ', c.type, N'(', w.width, N'))')
        END AS read_back
    FROM mq_internal.columns_of(@object_id, @list) AS c
    INNER JOIN sys.columns AS s ON s.object_id = @object_id AND s.column_id = c.column_id
    CROSS APPLY (
        SELECT CASE
            WHEN s.max_length = -1 THEN 'max'
            ELSE CAST(CASE LEFT(c.type, 1) WHEN N'n' THEN s.max_length / 2 ELSE s.max_length END AS varchar(10))
        END AS width
    ) AS w;
