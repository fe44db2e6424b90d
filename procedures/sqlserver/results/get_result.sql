-- get_result: a message's state, its result, and the error of its last failed attempt.
-- Arguments:   @id (the message)
-- Returns:     state (N new, A active, E dead, C archived), result (NULL: none was stored), error (while the message is
--              delayed or dead, else NULL); no row when there is no such message, live or archived
-- Errors:      50002 invalid_argument
-- Transaction: reads only, at the caller's level
-- Example:     EXEC mq.get_result 17;
--
-- It reads the same tables as message_state, but only by keys.

CREATE OR ALTER PROCEDURE mq.get_result
    @id bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    IF @id IS NULL
        EXEC mq.raise_error 'invalid_argument', N'id: must not be NULL';
    SELECT
        CASE
            WHEN EXISTS (
                SELECT *
                FROM mq.batch AS b
                INNER JOIN mq.claimed AS c ON c.batch_key = b.batch_key AND c.id = m.id
                WHERE b.type = m.type
            ) THEN 'A'
            WHEN e.id IS NOT NULL THEN 'E'
            WHEN COALESCE(d.id, g.id, r.id, o.id) IS NOT NULL THEN 'N'
        END AS state,
        k.result, COALESCE(e.error, d.error) AS error
    FROM mq.message AS m
    LEFT JOIN mq.dead AS e ON e.id = m.id
    LEFT JOIN mq.delayed AS d ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
    LEFT JOIN mq.grouped AS g ON g.id = m.id
    LEFT JOIN mq.ready AS r ON r.type = m.type AND r.priority = m.priority AND r.run_at = m.run_at AND r.id = m.id
    -- The position of a message in a queue that is claimed round-robin.
    LEFT JOIN mq.ready AS o ON o.type = m.type AND o.priority = -32768 AND o.run_at = '0001-01-01' AND o.id = m.id
    LEFT JOIN mq.result AS k ON k.id = m.id
    WHERE m.id = @id
    UNION ALL
    SELECT 'C', a.result, NULL
    FROM mq.archive AS a
    WHERE a.id = @id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;
GO
