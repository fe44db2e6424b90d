-- lock_polled: lock an adopted table's place: what claims from the table, or changes what it is, takes turns.
-- Arguments:   @name
-- Returns:     nothing
-- Errors:      50005 not_found
-- Transaction: joins the caller's
-- Example:     EXEC mq.lock_polled N'orders';

CREATE OR ALTER PROCEDURE mq.lock_polled
    @name nvarchar(400)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @found int = 0;
    SELECT @found = 1 FROM mq.polled_place WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE name = @name;
    IF @found = 0
        EXEC mq.raise_error 'not_found', N'name: no table is adopted as {}', @name;
END;
GO
