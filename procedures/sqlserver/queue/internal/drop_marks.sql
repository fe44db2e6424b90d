-- drop_marks: delete marks that newer ones have replaced. One that another claim is deleting is passed over.
-- Arguments:   @type, @n (older ones than this)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     EXEC mq.drop_marks N'email', 17;
--
-- @n is the mark that the caller has replaced. It stays until its successor is committed: while the caller is at work nobody
-- else sees the new one, and would see none at all.

CREATE OR ALTER PROCEDURE mq.drop_marks
    @type nvarchar(400),
    @n bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DELETE FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND n < @n AND n >= @n - 20;
END;
GO
