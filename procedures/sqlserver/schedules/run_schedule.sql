-- run_schedule: send a schedule's message once now, in addition to its regular times.
-- Arguments:   @name (1 to 200 characters)
-- Returns:     id: the new message
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; the schedule's regular times wait until it ends
-- Example:     EXEC mq.run_schedule N'nightly';
CREATE OR ALTER PROCEDURE mq.run_schedule
    @name nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(7), @schedule nvarchar(400), @found bit = 0;
    DECLARE @id bigint;
    BEGIN TRY
        EXEC mq_internal.require_name 'name', @name, 0;
        SET @schedule = @name;
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @found = 1 FROM mq.schedule WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE name = @schedule;
        IF @found = 0
            EXEC mq_internal.raise_error 'not_found', N'name: there is no schedule {}', @name;
        SET @now = SYSUTCDATETIME();
        EXEC mq_internal.send_occurrence @schedule, @now, @id OUTPUT;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @id AS id;
END;
