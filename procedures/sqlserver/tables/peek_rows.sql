-- peek_rows: list the rows of a polling table that are claimed, wait for a retry or are dead.
-- Arguments:   @name (1 to 200 characters), @state (A claimed, N waiting, E dead; NULL: all three), @size (1 to 10,000;
--              NULL: 20)
-- Returns:     id, row_key (a JSON object), state, attempts, consumer, run_at (A: end of the lease; N: next attempt; E: time of
--              death), error; by state, run_at and id
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table (the caller may not read the table)
-- Transaction: reads only; skips entries that another call is changing
-- Example:     EXEC mq.peek_rows N'orders', 'E';
CREATE OR ALTER PROCEDURE mq.peek_rows
    @name nvarchar(max),
    @state nvarchar(max) = NULL,
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @id nvarchar(400), @top int, @which char(1);
    EXEC mq_internal.require_name 'name', @name, 0;
    IF @state COLLATE Latin1_General_100_BIN2 NOT IN (N'A', N'N', N'E') OR LEN(@state + N'.') <> 2
        EXEC mq_internal.raise_error 'invalid_argument', N'state: must be A, N or E';
    EXEC mq_internal.require_range 'size', @size, 1, 10000;
    SELECT @id = @name, @top = COALESCE(@size, 20), @which = @state;
    IF NOT EXISTS (SELECT * FROM mq.polled WHERE name = @id)
        EXEC mq_internal.raise_error 'not_found', N'name: no table is adopted as {}', @id;
    -- Keys and errors are data of the table: only those who may read the table see them.
    EXEC mq_internal.require_rights @id, 0;
    SELECT TOP (@top) e.id, e.key_json AS row_key, e.state, e.attempts, e.consumer, COALESCE(b.lease_until, e.run_at) AS run_at, e.error
    FROM mq.polled_row AS e WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (polled_row_due))
    LEFT JOIN mq.polled_batch AS b WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON b.batch_key = e.batch_key
    WHERE e.name = @id AND e.state = COALESCE(@which, e.state)
    ORDER BY e.state, e.run_at, e.id;
END;
