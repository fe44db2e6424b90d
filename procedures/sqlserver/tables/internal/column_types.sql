-- column_types: return the types of a table's columns as one text, to detect later changes.
-- Arguments: @object_id, @list (columns)
-- Returns: each column with its type, size and collation
--
-- A longer varchar holds the same values: its size is left out.
CREATE OR ALTER FUNCTION mq_internal.column_types (@object_id int, @list nvarchar(max))
RETURNS nvarchar(max)
AS
BEGIN
    DECLARE @types nvarchar(max) = N'', @part nvarchar(800), @n int = 0;
    DECLARE @columns TABLE (n int NOT NULL PRIMARY KEY, part nvarchar(800) NOT NULL);
    INSERT INTO @columns (n, part)
    SELECT c.n, CONCAT(c.quoted, N' ', c.type, N' ',
        CASE WHEN c.type IN (N'varchar', N'nvarchar', N'varbinary') THEN NULL ELSE s.max_length END, N' ', s.[precision],
        N' ', s.scale, N' ', s.collation_name)
    FROM mq_internal.columns_of(@object_id, @list) AS c
    INNER JOIN sys.columns AS s ON s.object_id = @object_id AND s.column_id = c.column_id;
    WHILE @n IS NOT NULL
    BEGIN
        SET @n = (SELECT MIN(n) FROM @columns WHERE n > @n);
        SELECT @part = part FROM @columns WHERE n = @n;
        IF @n IS NOT NULL
            SET @types = CONCAT(@types, CASE @types WHEN N'' THEN N'' ELSE N', ' END, @part);
    END;
    RETURN @types;
END;
