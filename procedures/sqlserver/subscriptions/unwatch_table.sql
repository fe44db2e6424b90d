-- unwatch_table: drop a table's trigger and delete its subscriptions.
-- Arguments:   @table (table or schema.table, default schema: dbo; a dropped table: as messages name it)
-- Returns:     statement: no rows, because this call drops the trigger
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for transactions that use the table, and they wait for its end
-- Example:     EXEC mq.unwatch_table N'sales.orders';
CREATE OR ALTER PROCEDURE mq.unwatch_table
    @table nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @id int, @object_id int, @schema nvarchar(128);
    DECLARE @label nvarchar(300), @statement nvarchar(max);
    DECLARE @pieces mq.pieces;
    BEGIN TRY
        EXEC mq_internal.find_watched @table, 'ALTER', @id OUTPUT, @object_id OUTPUT, @schema OUTPUT, @label OUTPUT;
        IF @own = 1
            BEGIN TRANSACTION;
        IF @object_id IS NOT NULL
        BEGIN
            INSERT INTO @pieces (name, piece) VALUES ('schema', QUOTENAME(@schema)), ('object_id', CAST(@object_id AS nvarchar(11)));
            SET @statement = mq_internal.fill(N'DROP TRIGGER IF EXISTS {schema}.[mq_watch_{object_id}];', @pieces);
            EXEC sp_executesql @statement;
        END;
        DELETE s FROM mq.subscription AS s WITH (ROWLOCK, FORCESEEK, INDEX (subscription_pk)) WHERE s.watched_id = @id;
        DELETE FROM mq.watched WITH (ROWLOCK) WHERE id = @id;
        IF @own = 1
            COMMIT TRANSACTION;
        SELECT CAST(N'' AS nvarchar(max)) AS statement WHERE 1 = 0;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;
