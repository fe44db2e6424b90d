-- reset_active: give all rows at active_value their ready_value back.
-- Arguments: @name (of the polling table)
-- Returns: nothing, also when the table or its status column was dropped
-- Transaction: waits for transactions that have locked these rows
CREATE OR ALTER PROCEDURE mq_internal.reset_active
    @name nvarchar(400)
AS
BEGIN
    DECLARE @shape char(1), @object_id int, @quoted nvarchar(600), @status nvarchar(300), @value nvarchar(400);
    DECLARE @problem varchar(200), @detail nvarchar(2000), @active nvarchar(max), @ready nvarchar(max);
    DECLARE @statement nvarchar(max), @rounds bigint, @took int = 1;
    DECLARE @pieces mq.pieces;
    EXEC mq_internal.polled_shape @name, @shape OUTPUT, @object_id OUTPUT, @quoted OUTPUT, @status OUTPUT, @value OUTPUT,
        @problem OUTPUT, @detail OUTPUT;
    SELECT @active = active_value, @ready = ready_value FROM mq.polled WHERE name = @name;
    IF @active IS NULL OR @value IS NULL
        RETURN;
    INSERT INTO @pieces (name, piece)
    VALUES ('table', @quoted), ('status', @status), ('active', REPLACE(@value, N'?', N'@active')),
        ('ready', REPLACE(@value, N'?', N'@ready'));
    -- Limit the rounds by the current number of rows: a trigger may undo each change.
    SET @statement = mq_internal.fill(N'SELECT @rounds = COUNT_BIG(*) / 1000 + 1 FROM {table} AS t WITH (ROWLOCK, READCOMMITTEDLOCK)
WHERE t.{status} = {active};', @pieces);
    EXEC sp_executesql @statement, N'@active nvarchar(max), @rounds bigint OUTPUT', @active = @active, @rounds = @rounds OUTPUT;
    SET @statement = mq_internal.fill(N'UPDATE TOP (1000) t SET {status} = {ready} FROM {table} AS t WITH (ROWLOCK) WHERE t.{status} = {active};
SET @took = @@ROWCOUNT;', @pieces);
    WHILE @rounds > 0 AND @took > 0
    BEGIN
        -- A row that a constraint refuses keeps its status; it must not stop unadopt_table.
        SET XACT_ABORT OFF;
        BEGIN TRY
            EXEC sp_executesql @statement, N'@active nvarchar(max), @ready nvarchar(max), @took int OUTPUT', @active = @active,
                @ready = @ready, @took = @took OUTPUT;
        END TRY
        BEGIN CATCH
            IF mq_internal.concerns_all_rows(ERROR_NUMBER(), ERROR_SEVERITY(), XACT_STATE()) = 1
                THROW;
            SET @took = 0;
        END CATCH;
        SET XACT_ABORT ON;
        SET @rounds = @rounds - 1;
    END;
END;
