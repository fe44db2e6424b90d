-- bind_topic: send each message that is published to a matching topic to this queue.
-- Arguments:   @pattern (words separated by dots; * matches exactly one word, # zero or more), @type; both have 1 to 200
--              characters
-- Returns:     created: 1; 0 when the binding already exists
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; applies to messages published after its commit; another call for the same binding
--              waits for it
-- Example:     EXEC mq.bind_topic N'orders.*.paid', N'invoice';
CREATE OR ALTER PROCEDURE mq.bind_topic
    @pattern nvarchar(max),
    @type nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @name nvarchar(400), @words nvarchar(400);
    DECLARE @star int, @hash int, @at int, @prefix nvarchar(400), @created smallint;
    BEGIN TRY
        EXEC mq_internal.require_topic 'pattern', @pattern, 1;
        EXEC mq_internal.require_name 'type', @type, 0;
        SELECT @words = @pattern, @name = @type;
        -- The words before the first wildcard, without the dot in front of it.
        SELECT @star = CHARINDEX(N'*', @words COLLATE Latin1_General_100_BIN2), @hash = CHARINDEX(N'#', @words COLLATE Latin1_General_100_BIN2);
        SET @at = CASE WHEN @star = 0 OR @hash BETWEEN 1 AND @star THEN @hash ELSE @star END;
        SET @prefix = CASE @at WHEN 0 THEN @words WHEN 1 THEN N'' ELSE LEFT(@words COLLATE Latin1_General_100_BIN2, @at - 2) END;
        IF @own = 1
            BEGIN TRANSACTION;
        -- Of two equal calls, the second finds the row of the first.
        EXEC mq_internal.wait_for_lock 'topic', @words, @name;
        INSERT INTO mq.binding (pattern, type, prefix)
        SELECT @words, @name, @prefix
        WHERE NOT EXISTS (
            SELECT * FROM mq.binding WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (binding_pk))
            WHERE pattern = @words AND type = @name
        );
        SET @created = @@ROWCOUNT;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @created AS created;
END;
