-- set_progress: keep how far a handler is, as the step `progress` of its message: {"done":3,"total":10,"note":"page 3"}.
-- Arguments:   @id (the message), @batch_key (the batch key that holds it), @done (0 to 9,007,199,254,740,991), @total (the
--              same; NULL: not known), @note (up to 500 characters; NULL: none)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument, 50008 lease_lost, 50011 cancelled (nothing is saved)
-- Transaction: as for save_step
-- Example:     EXEC mq.set_progress 17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 3, 10, N'page 3';
CREATE OR ALTER PROCEDURE mq.set_progress
    @id bigint,
    @batch_key nvarchar(max),
    @done bigint,
    @total bigint = NULL,
    @note nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- The largest number that every reader of JSON takes unchanged.
    DECLARE @most bigint = 9007199254740991, @value nvarchar(max);
    IF @done IS NULL
        EXEC mq_internal.raise_error 'invalid_argument', N'done: must not be NULL';
    EXEC mq_internal.require_range 'done', @done, 0, @most;
    EXEC mq_internal.require_range 'total', @total, 0, @most;
    -- As in require_name.
    IF LEN((@note + N'.') COLLATE Latin1_General_100_CI_AS_SC) > 501
        EXEC mq_internal.raise_error 'invalid_argument', N'note: must be a text of up to 500 characters';
    -- STRING_ESCAPE escapes a slash too, which needs none.
    SET @note = REPLACE(STRING_ESCAPE(@note, 'json') COLLATE Latin1_General_100_BIN2, N'\/', N'/');
    SET @value = CONCAT(N'{"done":', @done, N',"total":' + CAST(@total AS nvarchar(20)), N',"note":"' + @note + N'"', N'}');
    EXEC mq.save_step @id, @batch_key, N'progress', @value;
END;
