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
    DECLARE @state char(1), @result nvarchar(max), @error nvarchar(max);
    IF @id IS NULL
        EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
    SELECT @result = k.result, @error = COALESCE(e.error, d.error),
        -- A message in none of these tables is active. Without row versions, a search of the batches would wait for others.
        @state = CASE
            WHEN e.id IS NOT NULL THEN 'E'
            -- In a grouped queue a row of mq.ready is a ticket, which may remain while its message is active.
            WHEN d.id IS NOT NULL OR g.id IS NOT NULL OR (p.grouped = 0 AND r.id IS NOT NULL) THEN 'N'
            ELSE 'A'
        END
    FROM mq.message AS m
    CROSS APPLY mq_internal.policy(m.type) AS p
    LEFT JOIN mq.dead AS e ON e.id = m.id
    LEFT JOIN mq.delayed AS d ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
    LEFT JOIN mq.grouped AS g ON g.id = m.id
    OUTER APPLY mq_internal.ready_row(m.type, m.id, m.priority, m.group_key, m.run_at) AS r
    LEFT JOIN mq.result AS k ON k.id = m.id
    WHERE m.id = @id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    IF @state IS NULL
        SELECT @state = 'C', @result = result FROM mq.archive WITH (ROWLOCK, FORCESEEK, INDEX (archive_id)) WHERE id = @id;
    SELECT @state AS state, @result AS result, @error AS error WHERE @state IS NOT NULL;
END;
