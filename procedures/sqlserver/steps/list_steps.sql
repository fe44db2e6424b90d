-- list_steps: the steps that handlers of a live message have saved, the last one first; for operators, who hold no lease.
-- Arguments:   @id (the message), @size (at most so many steps, 1 to 10,000; NULL: 100)
-- Returns:     step, step_value (its first 1,000 characters), saved_at; no row for a message without steps
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks; skips steps that an open transaction is saving
-- Example:     EXEC mq.list_steps 17;
CREATE OR ALTER PROCEDURE mq.list_steps
    @id bigint,
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @top int = 100, @length int = 1000;
    IF @id IS NULL
        EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
    EXEC mq_internal.require_range 'size', @size, 1, 10000;
    SET @top = COALESCE(@size, @top);
    SELECT TOP (@top) step, LEFT(step_value COLLATE Latin1_General_100_CI_AS_SC, @length) AS step_value, saved_at
    FROM mq.step WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE id = @id
    ORDER BY n DESC
    OPTION (KEEPFIXED PLAN);
END;
