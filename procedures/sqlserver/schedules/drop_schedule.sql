-- drop_schedule: delete a schedule; messages that it has sent stay.
-- Arguments:   @name (1 to 200 characters)
-- Returns:     affected: 1; 0 when there was none
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     EXEC mq.drop_schedule N'nightly';
CREATE OR ALTER PROCEDURE mq.drop_schedule
    @name nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @schedule nvarchar(400), @count bigint;
    EXEC mq_internal.require_name 'name', @name, 0;
    SET @schedule = @name;
    DELETE FROM mq.schedule WITH (ROWLOCK) WHERE name = @schedule;
    SET @count = @@ROWCOUNT;
    SELECT @count AS affected;
END;
