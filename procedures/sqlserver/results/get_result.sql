-- get_result: a message's state, its result, and the error of its last failed attempt.
-- Arguments:   @id (the message)
-- Returns:     state (N new, A active, E dead, C archived), result (NULL: none was stored), error (while the message is
--              delayed or dead, else NULL); no row when there is no such message, live or archived
-- Errors:      50002 invalid_argument
-- Transaction: reads only; without READ_COMMITTED_SNAPSHOT it waits for a transaction that is changing this message
-- Example:     EXEC mq.get_result 17;
CREATE OR ALTER PROCEDURE mq.get_result
    @id bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: no locks of this read stay
    IF @id IS NULL
        EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
    DECLARE @state char(1) = mq_internal.state_of(@id);
    SELECT @state AS state, COALESCE(k.result, c.result) AS result, COALESCE(e.error, d.error) AS error
    FROM (SELECT @id AS id WHERE @state IS NOT NULL) AS i
    LEFT JOIN mq.message AS m ON m.id = i.id
    LEFT JOIN mq.result AS k ON k.id = i.id
    LEFT JOIN mq.dead AS e ON e.id = i.id
    LEFT JOIN mq.delayed AS d ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
    LEFT JOIN mq.archive AS c WITH (ROWLOCK, FORCESEEK, INDEX (archive_id)) ON c.id = i.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;
