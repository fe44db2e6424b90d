-- unbind_topic: remove the bindings of a pattern, of a queue, or one.
-- Arguments:   @pattern (as it was bound; NULL: all of the queue), @type (NULL: all of the pattern); 1 to 200 characters, and
--              not both NULL
-- Returns:     affected: bindings removed
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; messages that were sent stay. without READ_COMMITTED_SNAPSHOT publishers to a matching
--              topic wait until the transaction ends
-- Example:     EXEC mq.unbind_topic N'orders.*.paid', N'invoice';
CREATE OR ALTER PROCEDURE mq.unbind_topic
    @pattern nvarchar(max) = NULL,
    @type nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @name nvarchar(400), @words nvarchar(400), @count bigint;
    BEGIN TRY
        IF @pattern IS NULL AND @type IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'pattern: give a pattern, a type, or both';
        EXEC mq_internal.require_name 'pattern', @pattern, 1;
        EXEC mq_internal.require_name 'type', @type, 1;
        SELECT @words = @pattern, @name = @type;
        IF @own = 1
            BEGIN TRANSACTION;
        DELETE FROM mq.binding WITH (ROWLOCK)
        WHERE (@words IS NULL OR pattern = @words) AND (@name IS NULL OR type = @name);
        SET @count = @@ROWCOUNT;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected;
END;
