-- name_list: write column names as a user writes them.
-- Arguments: @columns (quoted, separated by commas)
-- Returns: the names separated by commas, in brackets only where needed; NULL for NULL
CREATE OR ALTER FUNCTION mq_internal.name_list (@columns nvarchar(max))
RETURNS nvarchar(max)
AS
BEGIN
    DECLARE @list nvarchar(max), @name nvarchar(400), @n int = 1, @count int;
    DECLARE @names TABLE (n int NOT NULL PRIMARY KEY, name nvarchar(400));
    INSERT INTO @names (n, name) SELECT n, name FROM mq_internal.split_names(@columns, N',');
    -- 0 when there are no columns.
    SELECT @count = MAX(n) FROM @names;
    WHILE @n <= @count
    BEGIN
        SET @name = NULL;
        SELECT @name = name FROM @names WHERE n = @n;
        -- A plain name parses to itself. Append a character before comparing: trailing blanks would be ignored.
        IF NOT EXISTS (
            SELECT * FROM mq_internal.split_names(@name, N',') WHERE n = 1 AND (name + N'.') COLLATE Latin1_General_100_BIN2 = @name + N'.'
        )
            SET @name = QUOTENAME(CAST(@name AS nvarchar(128)));
        SELECT @list = CONCAT(@list + N', ', @name), @n = @n + 1;
    END;
    RETURN @list;
END;
