-- purge_archive: delete archived messages that were completed before a time.
-- Arguments:   @before (UTC; messages completed earlier are deleted), @size (1 to 10,000; NULL: 1,000)
-- Returns:     count: messages deleted; repeat until it is 0
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; skips rows that another call is deleting
-- Example:     DECLARE @before datetime2(7) = DATEADD(DAY, -90, SYSUTCDATETIME()); EXEC mq.purge_archive @before, 10000;
CREATE OR ALTER PROCEDURE mq.purge_archive
    @before datetime2(7),
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @count bigint = 0;
    BEGIN TRY
        IF @before IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'before: must not be NULL';
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        SET @size = COALESCE(@size, 1000);
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.erase_archived NULL, @before, @size, @count OUTPUT;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS count;
END;
