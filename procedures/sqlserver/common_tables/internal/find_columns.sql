-- find_columns: check a list of a table's columns.
-- Arguments: @argument (its name in the contract), @object_id (the table), @list (names separated by commas)
-- Returns: @columns: the same list with quoted names as in the catalog, for mq_internal.columns_of
CREATE OR ALTER PROCEDURE mq_internal.find_columns
    @argument varchar(200), @object_id int, @list nvarchar(max), @columns nvarchar(4000) OUTPUT
AS
BEGIN
    DECLARE @detail nvarchar(2000), @count int, @n int = 1, @quoted nvarchar(max);
    DECLARE @named TABLE (n int NOT NULL, name nvarchar(400), quoted nvarchar(300), column_id int);
    INSERT INTO @named (n, name, quoted, column_id)
    SELECT l.n, l.name, c.quoted, c.column_id
    FROM mq_internal.split_names(@list, N',') AS l
    LEFT JOIN mq_internal.columns_of(@object_id, @list) AS c ON c.n = l.n;
    SELECT @count = MAX(n) FROM @named;
    IF @count = 0
        SET @detail = CONCAT(@argument, N': must be names of columns, separated by commas; at most 200 characters per name; ',
            N'quote a name that is not a plain identifier with double quotes or brackets');
    SELECT TOP (1) @detail = CONCAT(@argument, N': the table has no column ', name)
    FROM @named WHERE n > 0 AND column_id IS NULL ORDER BY n;
    IF @detail IS NULL
        SELECT TOP (1) @detail = CONCAT(@argument, N': names column ', MAX(name), N' twice')
        FROM @named GROUP BY column_id HAVING COUNT(*) > 1 ORDER BY MIN(n);
    WHILE @n <= @count
    BEGIN
        SELECT @quoted = CONCAT(@quoted + N', ', quoted) FROM @named WHERE n = @n;
        SET @n = @n + 1;
    END;
    IF @detail IS NULL AND DATALENGTH(@quoted) > 8000
        SET @detail = CONCAT(@argument, N': the names are longer than 4,000 characters together');
    IF @detail IS NOT NULL
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
    SET @columns = @quoted;
END;
