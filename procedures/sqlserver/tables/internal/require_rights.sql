-- require_rights: refuse a caller without the rights that a call needs on a polling table, and a table that was
--     dropped.
-- Arguments: @name (the polling table), @change (0: the call only reads)
--
-- The statements on the table run with the caller's rights anyway. This check returns the GRANT to run. It also hides
-- what the queue has stored about rows from users that may not read them. Nobody has rights on a table that was
-- dropped.
CREATE OR ALTER PROCEDURE mq_internal.require_rights
    @name nvarchar(400), @change bit
AS
BEGIN
    DECLARE @quoted nvarchar(600), @update bit, @delete bit, @facts int, @detail nvarchar(2000);
    SELECT @quoted = CONCAT(QUOTENAME(table_schema), N'.', QUOTENAME(table_name)),
        @update = CASE WHEN @change = 1 AND status_column IS NOT NULL THEN 1 ELSE 0 END,
        @delete = CASE WHEN @change = 1 AND on_complete = 'delete' THEN 1 ELSE 0 END
    FROM mq.polled WHERE name = @name;
    SET @facts = mq_internal.table_facts(@quoted);
    IF COALESCE(@facts, 0) <= 0
        EXEC mq_internal.raise_error 'not_found', N'table: {} no longer exists', @quoted;
    SET @detail = mq_internal.missing_rights(@quoted, @update, @delete);
    IF @detail IS NULL AND @facts = 2
        SET @detail = @quoted + N' has a security policy that filters its rows, and the queue would treat hidden rows as deleted';
    IF @detail IS NOT NULL
        EXEC mq_internal.raise_error 'unsuitable_table', @detail;
END;
