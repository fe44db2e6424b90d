-- redrive_row: retry one dead row of a polling table, with its attempts reset to 0.
-- Arguments:   @name (1 to 200 characters), @id (the row, as peek_rows lists it)
-- Returns:     affected: 1; 0 when the row is not dead, its status was changed by others, or the table refuses the change
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for claims of the table and for transactions that have locked this row
-- Example:     EXEC mq.redrive_row N'orders', 17;
CREATE OR ALTER PROCEDURE mq.redrive_row
    @name nvarchar(max),
    @id bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @count bigint;
    BEGIN TRY
        EXEC mq_internal.require_name 'name', @name, 0;
        IF @id IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL; redrive_rows retries all dead rows';
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.redrive_polled @name, @id, 1, @count OUTPUT;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected;
END;
