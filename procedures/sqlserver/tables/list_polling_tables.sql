-- list_polling_tables: list the polling tables, their settings, and how many rows are claimed, wait for a retry or are dead.
-- Arguments:   @name (1 to 200 characters; NULL: all)
-- Returns:     one row per polling table, by name; active, waiting and dead are counted up to 10,000
-- Errors:      50002 invalid_argument
-- Transaction: reads only; skips entries that another call is changing; does not read the polling tables themselves
-- Example:     EXEC mq.list_polling_tables;
CREATE OR ALTER PROCEDURE mq.list_polling_tables
    @name nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @id nvarchar(400);
    EXEC mq_internal.require_name 'name', @name, 1;
    SET @id = @name;
    SELECT p.name, CONCAT(CASE WHEN p.table_schema <> N'dbo' THEN p.table_schema + N'.' END, p.table_name) AS table_name,
        mq_internal.name_list(p.key_columns) AS key_columns, (SELECT name FROM mq_internal.split_names(p.order_column, N',') WHERE n = 1) AS order_column,
        (SELECT name FROM mq_internal.split_names(p.status_column, N',') WHERE n = 1) AS status_column, p.ready_value, p.active_value, p.done_value,
        p.error_value, p.on_complete, p.late_seconds, CAST(p.equal_rows AS smallint) AS equal_rows, p.max_attempts,
        mq_internal.count_polled(p.name, 'A') AS active, mq_internal.count_polled(p.name, 'N') AS waiting, mq_internal.count_polled(p.name, 'E') AS dead
    FROM mq.polled AS p WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE @id IS NULL OR p.name = @id
    ORDER BY p.name;
END;
