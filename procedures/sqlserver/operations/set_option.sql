-- set_option: change one setting of a queue.
-- Arguments:   @type (1 to 200 characters), @option (the name of a setting, see set_queue), @value (NULL: the default)
-- Returns:     the settings of the queue after the call, paused, and known (0: nothing had this name before)
-- Errors:      50002 invalid_argument, 50004 queue_not_empty, 50009 area_missing: as set_queue
-- Transaction: as set_queue
-- Example:     EXEC mq.set_option N'invoice', N'max_attempts', N'5';
CREATE OR ALTER PROCEDURE mq.set_option
    @type nvarchar(max),
    @option nvarchar(max),
    @value nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @options nvarchar(max);
    EXEC mq_internal.require_name 'option', @option, 0;
    SET @options = CONCAT(N'{"', STRING_ESCAPE(@option, N'json'), N'": ', CASE
        WHEN @value IS NULL THEN N'null'
        WHEN LEN(@value) < 19 AND TRY_CAST(@value AS bigint) IS NOT NULL THEN CAST(TRY_CAST(@value AS bigint) AS nvarchar(20))
        ELSE CONCAT(N'"', STRING_ESCAPE(@value, N'json'), N'"')
    END, N'}');
    EXEC mq.set_queue @type, @options;
END;
