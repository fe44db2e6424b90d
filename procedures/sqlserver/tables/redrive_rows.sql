-- redrive_rows: retry the dead rows of a polling table, with their attempts reset to 0.
-- Arguments:   @name (1 to 200 characters), @size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: rows that will be retried, those that died first; repeat until it is 0
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for claims of the table and for transactions that have locked these rows
-- Example:     EXEC mq.redrive_rows N'orders';
CREATE OR ALTER PROCEDURE mq.redrive_rows
    @name nvarchar(max),
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @count bigint;
    BEGIN TRY
        EXEC mq_internal.require_name 'name', @name, 0;
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        SET @size = COALESCE(@size, 1000);
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.redrive_polled @name, NULL, @size, @count OUTPUT;
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
