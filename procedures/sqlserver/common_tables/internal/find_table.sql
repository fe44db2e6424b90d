-- find_table: find a user's table by the name in an argument.
-- Arguments: @argument (its name in the contract), @table (as written in T-SQL; the default schema is dbo)
-- Returns: @object_id, @schema, @name, @quoted (for dynamic SQL), @label (for error texts: without the schema dbo)
--
-- A user finds only tables on which it has a right; other tables are not found.
CREATE OR ALTER PROCEDURE mq_internal.find_table
    @argument varchar(200), @table nvarchar(max), @object_id int OUTPUT, @schema nvarchar(128) OUTPUT,
    @name nvarchar(128) OUTPUT, @quoted nvarchar(600) OUTPUT, @label nvarchar(300) OUTPUT
AS
BEGIN
    DECLARE @parts int, @first nvarchar(400), @second nvarchar(400), @kind varchar(2), @why nvarchar(200);
    DECLARE @detail nvarchar(2000);
    SELECT @parts = MAX(n), @first = MAX(CASE n WHEN 1 THEN name ELSE N'' END), @second = MAX(CASE n WHEN 2 THEN name ELSE N'' END)
    FROM mq_internal.split_names(@table, N'.');
    IF @parts NOT IN (1, 2)
    BEGIN
        SET @detail = CONCAT(@argument, N': must be table or schema.table; at most 200 characters per name; ',
            N'quote a name that is not a plain identifier with double quotes or brackets');
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
    END;
    IF @parts = 1
        SELECT @second = @first, @first = N'dbo';
    -- The server resolves the name, with its own rules for comparing names. QUOTENAME returns NULL for a name that is too
    -- long; the schema is needed, or the name could mean another table.
    SET @object_id = OBJECT_ID(QUOTENAME(@first) + N'.' + QUOTENAME(@second));
    SELECT @schema = SCHEMA_NAME(schema_id), @name = name, @kind = RTRIM(type),
        @why = CASE
            WHEN SCHEMA_NAME(schema_id) = N'mq' OR is_ms_shipped = 1 THEN N'is a table of the queue or of the system'
        END
    FROM sys.all_objects
    WHERE object_id = @object_id;
    IF LEFT(@second, 1) = N'#'
        SELECT @name = @second, @kind = 'TT';
    IF @kind IN ('V', 'SN', 'TF', 'IF', 'FT', 'ET', 'TT')
        SET @why = COALESCE(@why, N'is not an ordinary table, but a view, a temporary table or the like');
    ELSE IF @kind = 'S'
        SET @why = N'is a table of the queue or of the system';
    ELSE IF @kind IS NULL OR @kind <> 'U'
    BEGIN
        SET @detail = CONCAT(@argument, N': there is no table ', CASE WHEN @first <> N'dbo' THEN @first + N'.' END, @second);
        EXEC mq_internal.raise_error 'not_found', @detail;
    END;
    SELECT @why = COALESCE(@why, N'is an external or a memory-optimized table, or the history of another table')
    -- Before 2022 sys.tables has no ledger_type: the name then means that of l.
    FROM (VALUES (0)) AS l (ledger_type)
    CROSS APPLY (
        SELECT is_external, is_memory_optimized, temporal_type, ledger_type AS ledger FROM sys.tables WHERE object_id = @object_id
    ) AS t
    WHERE t.is_external = 1 OR t.is_memory_optimized = 1 OR t.temporal_type = 1 OR t.ledger = 1;
    -- 5: a clustered columnstore index; its rows cannot be locked one by one (error 651).
    SELECT @why = COALESCE(@why, N'has a clustered columnstore index: its rows cannot be locked one by one')
    FROM sys.indexes
    WHERE object_id = @object_id AND type = 5;
    SELECT @quoted = CONCAT(QUOTENAME(@schema), N'.', QUOTENAME(@name)),
        @label = CONCAT(CASE WHEN @schema <> N'dbo' THEN @schema + N'.' END, @name);
    IF @why IS NOT NULL
    BEGIN
        SET @detail = CONCAT(@label, N' ', @why);
        EXEC mq_internal.raise_error 'unsuitable_table', @detail;
    END;
END;
