-- require_rights: refuse a caller who may not do what is to be done with an adopted table, or when it is gone.
-- Arguments:   @name (the adopted table), @change (0: it is only read)
-- Returns:     nothing
-- Errors:      50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's
-- Example:     EXEC mq.require_rights N'orders', 1;
--
-- The statements on the table have the caller's rights whatever this says. It tells which GRANT lacks, and it keeps what the
-- queue knows of the rows from those who may not read them. Nobody has rights on a table that is not there any more.

CREATE OR ALTER PROCEDURE mq.require_rights
    @name nvarchar(400),
    @change bit
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @quoted nvarchar(600), @update bit, @delete bit, @facts int, @detail nvarchar(2000);
    SELECT @quoted = CONCAT(QUOTENAME(table_schema), N'.', QUOTENAME(table_name)),
        @update = CASE WHEN @change = 1 AND status_column IS NOT NULL THEN 1 ELSE 0 END,
        @delete = CASE WHEN @change = 1 AND on_complete = 'delete' THEN 1 ELSE 0 END
    FROM mq.polled WHERE name = @name;
    SET @facts = mq.table_facts(@quoted);
    IF COALESCE(@facts, 0) = 0
        EXEC mq.raise_error 'not_found', N'table: there is no {} any more', @quoted;
    SET @detail = mq.lacks(@quoted, @update, @delete);
    IF @detail IS NULL AND @facts = 2
        SET @detail = @quoted + N' has a security policy that filters its rows: rows that it hides would look as if they were gone';
    IF @detail IS NOT NULL
        EXEC mq.raise_error 'unsuitable_table', @detail;
END;
GO
