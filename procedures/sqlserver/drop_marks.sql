-- drop_marks: delete marks that newer ones have replaced. One that another claim is deleting is passed over.
-- Arguments:   @type, @n (older ones, and this one)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     EXEC mq.drop_marks N'email', 17;

CREATE OR ALTER PROCEDURE mq.drop_marks
    @type nvarchar(400),
    @n bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DELETE FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND n <= @n AND n >= @n - 20;
END;
GO
