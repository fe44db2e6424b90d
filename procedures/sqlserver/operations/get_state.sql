-- get_state: the state of a message.
-- Arguments:   @id (the message)
-- Returns:     state: N (new), A (active), E (dead), C (archived); NULL: completed and not archived, deleted, or never sent
-- Errors:      50002 invalid_argument
-- Transaction: reads only; without READ_COMMITTED_SNAPSHOT it waits for a transaction that is changing this message
-- Example:     EXEC mq.get_state 17;
CREATE OR ALTER PROCEDURE mq.get_state
    @id bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: at a higher level, the locks of this read would stay until the caller's transaction ends.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @id IS NULL
        EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
    SELECT mq_internal.state_of(@id) AS state;
END;
