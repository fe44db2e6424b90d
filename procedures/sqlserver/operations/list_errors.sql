-- list_errors: count the dead letters of a queue by their error, exactly.
-- Arguments:   @type (1 to 200 characters), @size (the most errors to return, 1 to 10,000; NULL: 20)
-- Returns:     error (its first line, up to 200 characters, with # for each number; '': no error), count, first_at,
--              last_at, last_id; the most frequent error first
-- Errors:      50002 invalid_argument
-- Transaction: reads only: an index entry for each dead letter of the queue; never waits for locks; skips dead letters that another call is changing
-- Example:     EXEC mq.list_errors N'email';
CREATE OR ALTER PROCEDURE mq.list_errors
    @type nvarchar(max),
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @name nvarchar(400), @top int = 20;
    EXEC mq_internal.require_name 'type', @type, 0;
    EXEC mq_internal.require_range 'size', @size, 1, 10000;
    SELECT @name = @type, @top = COALESCE(@size, @top);
    SELECT g.error_group AS error, g.messages, g.first_at, g.last_at, l.id AS last_id
    FROM (
        SELECT TOP (@top) error_group, COUNT_BIG(*) AS messages, MIN(died_at) AS first_at, MAX(died_at) AS last_at
        FROM mq.dead WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (dead_error))
        WHERE type = @name
        GROUP BY error_group
        ORDER BY COUNT_BIG(*) DESC, error_group
    ) AS g
    OUTER APPLY (
        SELECT TOP (1) id
        FROM mq.dead WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (dead_error))
        WHERE type = @name AND error_group = g.error_group
        ORDER BY died_at DESC, id DESC
    ) AS l
    ORDER BY g.messages DESC, g.error_group
    OPTION (KEEPFIXED PLAN);
END;
