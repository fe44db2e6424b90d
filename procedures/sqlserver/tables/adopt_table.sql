-- adopt_table: use a user's table as a queue, without changing the table.
-- Arguments:   @name (1 to 200 characters), @table (table or schema.table; default schema: dbo), @options (a flat
--              JSON object): key_columns (1 to 100 names separated by commas; default all columns, with equal_rows 1),
--              order_column (default the key columns), status_column (default none), ready_value, active_value (default: a
--              claim does not write the status), done_value, error_value, on_complete (keep or delete; keep), late_seconds
--              (0 to 315,360,000; only without a status and with keep), equal_rows (0 or 1; 0), max_attempts (1 to 1,000;
--              25)
-- Returns:     created: 1; 0 when the table is already adopted with the same settings
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's; calls wait for each other
-- Example:     EXEC mq.adopt_table N'orders', N'sales.orders', N'{"key_columns": "id", "status_column": "status",
--              "ready_value": "N", "active_value": "A", "done_value": "D", "error_value": "E"}';
--
-- Later calls use the table with the rights of their own callers: this call grants nothing.
CREATE OR ALTER PROCEDURE mq.adopt_table
    @name nvarchar(max),
    @table nvarchar(max),
    @options nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @created smallint, @id nvarchar(400), @delete bit, @equal bit;
    DECLARE @object_id int, @schema nvarchar(128), @named nvarchar(128), @quoted nvarchar(600), @label nvarchar(300);
    DECLARE @keys nvarchar(4000), @order nvarchar(300), @status nvarchar(300), @bad nvarchar(400), @detail nvarchar(2000);
    DECLARE @all nvarchar(max), @idents nvarchar(max), @types nvarchar(max);
    DECLARE @key_columns nvarchar(max), @order_column nvarchar(max), @status_column nvarchar(max), @ready_value nvarchar(max),
        @active_value nvarchar(max), @done_value nvarchar(max), @error_value nvarchar(max), @on_complete nvarchar(max),
        @late_seconds bigint, @equal_rows bigint, @max_attempts bigint;
    DECLARE @read TABLE (name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, value nvarchar(max));
    DECLARE @known nvarchar(max) = N'{"key_columns": "text", "order_column": "text", "status_column": "text", "ready_value": "text",
        "active_value": "text", "done_value": "text", "error_value": "text", "on_complete": "text",
        "late_seconds": [0, 315360000], "equal_rows": [0, 1], "max_attempts": [1, 1000]}';
    BEGIN TRY
        EXEC mq_internal.require_name 'name', @name, 0;
        SET @id = @name;
        EXEC mq_internal.require_options @options, N'options', @known;
        INSERT INTO @read (name, value) SELECT name, value FROM mq_internal.read_options(@options, @known);
        SELECT @key_columns = (SELECT value FROM @read WHERE name = N'key_columns'),
            @order_column = (SELECT value FROM @read WHERE name = N'order_column'),
            @status_column = (SELECT value FROM @read WHERE name = N'status_column'),
            @ready_value = (SELECT value FROM @read WHERE name = N'ready_value'),
            @active_value = (SELECT value FROM @read WHERE name = N'active_value'),
            @done_value = (SELECT value FROM @read WHERE name = N'done_value'),
            @error_value = (SELECT value FROM @read WHERE name = N'error_value'),
            @on_complete = (SELECT value FROM @read WHERE name = N'on_complete'),
            @late_seconds = CAST((SELECT value FROM @read WHERE name = N'late_seconds') AS bigint),
            @equal_rows = CAST((SELECT value FROM @read WHERE name = N'equal_rows') AS bigint),
            @max_attempts = CAST((SELECT value FROM @read WHERE name = N'max_attempts') AS bigint);
        IF @on_complete COLLATE Latin1_General_100_BIN2 NOT IN (N'keep', N'delete')
            EXEC mq_internal.raise_error 'invalid_argument', N'on_complete: must be keep or delete';
        EXEC mq_internal.find_table 'table', @table, @object_id OUTPUT, @schema OUTPUT, @named OUTPUT, @quoted OUTPUT, @label OUTPUT;
        IF @key_columns IS NOT NULL
            EXEC mq_internal.find_columns 'key_columns', @object_id, @key_columns, @keys OUTPUT;
        IF @order_column IS NOT NULL
            EXEC mq_internal.find_one_column 'order_column', @object_id, @order_column, @order OUTPUT;
        IF @status_column IS NOT NULL
            EXEC mq_internal.find_one_column 'status_column', @object_id, @status_column, @status OUTPUT;
        SELECT @delete = CASE @on_complete WHEN N'delete' THEN 1 ELSE 0 END, @equal = COALESCE(@equal_rows, 0);

        IF @status IS NULL
            SELECT @bad = CASE
                WHEN @ready_value IS NOT NULL THEN N'ready_value' WHEN @active_value IS NOT NULL THEN N'active_value'
                WHEN @done_value IS NOT NULL THEN N'done_value' WHEN @error_value IS NOT NULL THEN N'error_value'
            END;
        IF @bad IS NOT NULL
            SET @detail = @bad + N': needs a status_column';
        ELSE IF EXISTS (SELECT * FROM mq_internal.columns_of(@object_id, @keys) WHERE @keys IS NOT NULL AND quoted = @status)
            SET @detail = N'key_columns: must not include the status_column';
        ELSE IF @order = @status
            SET @detail = N'order_column: must not be the status_column';
        IF @detail IS NOT NULL
            EXEC mq_internal.raise_error 'invalid_argument', @detail;
        IF @status IS NOT NULL
            EXEC mq_internal.require_status @object_id, @status, @ready_value, @active_value, @done_value, @error_value, @delete;
        IF @late_seconds IS NOT NULL AND (@status IS NOT NULL OR @delete = 1)
            EXEC mq_internal.raise_error 'invalid_argument', N'late_seconds: allowed only without a status_column and with keep';
        IF @equal_rows = 1 AND @keys IS NOT NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'equal_rows: allowed only without key_columns';

        EXEC mq_internal.require_claimable @object_id, @quoted, @label, @keys, @order, @status, @delete, @equal, @late_seconds;

        -- Without a key, store the current columns as the identity: a column added later does not change a row's identity.
        IF @keys IS NULL
            SET @idents = mq_internal.row_identity(@object_id, NULL, @status, 'list');
        SET @all = CONCAT(COALESCE(@keys, @idents), N', ' + @order, N', ' + @status);
        SELECT @types = mq_internal.column_types(@object_id, @all), @max_attempts = COALESCE(@max_attempts, 25);

        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.add_polled @id, @schema, @named, @keys, @order, @status, @ready_value, @active_value, @done_value, @error_value, @delete,
            @late_seconds, @equal, @max_attempts, @idents, @types, @created OUTPUT;
        IF @own = 1
            COMMIT TRANSACTION;
        SELECT @created AS created;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;
