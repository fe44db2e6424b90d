-- add_polled: store a polling table.
-- Arguments: @name, @schema and @table (its names), @keys, @order and @status (columns, quoted), the four status
--     values, @delete (1: delete done rows), @late_seconds, @equal_rows, @max_attempts, @idents (the columns that
--     identify a row without a key; NULL: it has a key), @types (see column_types)
-- Returns: @created: 1; 0 when the table is already adopted with the same settings
-- Transaction: calls wait for each other
CREATE OR ALTER PROCEDURE mq_internal.add_polled
    @name nvarchar(400), @schema nvarchar(128), @table nvarchar(128), @keys nvarchar(4000), @order nvarchar(300),
    @status nvarchar(300), @ready_value nvarchar(max), @active_value nvarchar(max), @done_value nvarchar(max),
    @error_value nvarchar(max), @delete bit, @late_seconds bigint, @equal_rows bit, @max_attempts bigint,
    @idents nvarchar(max), @types nvarchar(max), @created smallint OUTPUT
AS
BEGIN
    DECLARE @other nvarchar(400), @same bit, @detail nvarchar(2000);
    DECLARE @pieces mq.pieces;
    EXEC mq_internal.wait_for_lock 'adopt_table', N'', N'';
    SELECT TOP (1) @other = name
    FROM mq.polled WITH (ROWLOCK, READCOMMITTEDLOCK)
    WHERE name <> @name AND table_schema = @schema AND table_name = @table AND (status_column IS NOT NULL OR on_complete = 'delete')
        AND (@status IS NOT NULL OR @delete = 1) AND COALESCE(status_column, N'') = COALESCE(@status, N'')
        AND (ready_value = @ready_value OR (ready_value IS NULL AND @ready_value IS NULL));
    IF @other IS NOT NULL
    BEGIN
        INSERT INTO @pieces (name, piece)
        VALUES ('table', CONCAT(CASE WHEN @schema <> N'dbo' THEN @schema + N'.' END, @table)), ('other', @other);
        SET @detail = mq_internal.fill(N'{table} is adopted as {other} already: its rows would be claimed twice', @pieces);
        EXEC mq_internal.raise_error 'already_exists', @detail;
    END;
    SELECT @same = CASE WHEN EXISTS (
        SELECT p.table_schema, p.table_name, p.key_columns, p.order_column, p.status_column, p.ready_value, p.active_value,
            p.done_value, p.error_value, p.on_complete, p.late_seconds, p.equal_rows, p.max_attempts
        INTERSECT
        SELECT @schema, @table, @keys, @order, @status, @ready_value, @active_value, @done_value, @error_value,
            CASE @delete WHEN 1 THEN N'delete' ELSE N'keep' END, @late_seconds, @equal_rows, @max_attempts
    ) THEN 1 ELSE 0 END
    FROM mq.polled AS p WITH (ROWLOCK, READCOMMITTEDLOCK)
    WHERE p.name = @name;
    IF @same = 0
        EXEC mq_internal.raise_error 'already_exists', N'name: {} is adopted with other settings: unadopt_table first', @name;
    IF @same = 1
        SET @created = 0;
    ELSE
    BEGIN
        INSERT INTO mq.polled (name, table_schema, table_name, key_columns, order_column, status_column, ready_value, active_value,
            done_value, error_value, on_complete, late_seconds, equal_rows, max_attempts, ident_columns, column_types)
        VALUES (@name, @schema, @table, @keys, @order, @status, @ready_value, @active_value, @done_value, @error_value,
            CASE @delete WHEN 1 THEN N'delete' ELSE N'keep' END, @late_seconds, @equal_rows, @max_attempts, @idents, @types);
        INSERT INTO mq.polled_place (name) VALUES (@name);
        SET @created = 1;
    END;
END;
