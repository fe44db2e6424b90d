-- release_rows: give claimed rows back without counting an attempt.
-- Arguments:   @batch_key
-- Returns:     affected: rows given back; 0 when the lease was lost
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for transactions that have locked these rows
-- Example:     EXEC mq.release_rows '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2';
CREATE OR ALTER PROCEDURE mq.release_rows
    @batch_key nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @key uniqueidentifier, @name nvarchar(400);
    DECLARE @count bigint = 0, @dead bigint, @gone bigint, @took int = 1;
    BEGIN TRY
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.drop_polled_batch @batch_key, 0, @key OUTPUT, @name OUTPUT;
        IF @name IS NOT NULL
        BEGIN
            EXEC mq_internal.require_rights @name, 1;
            WHILE @took > 0
            BEGIN
                UPDATE TOP (1000) e
                SET todo = 'L', hit = 0, refused = 0, retry = NULL
                FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
                WHERE e.batch_key = @key AND e.todo IS NULL;
                SET @took = @@ROWCOUNT;
            END;
            EXEC mq_internal.fail_rows @name, @key, 0, @count OUTPUT, @dead OUTPUT, @gone OUTPUT;
        END;
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
