-- drop_queue: remove the settings of a queue, of its groups, and its marks.
-- Arguments:   @type (1 to 200 characters)
-- Returns:     known (0: nothing had this name)
-- Errors:      50002 invalid_argument, 50004 queue_not_empty (the queue holds a new, active or dead message)
-- Transaction: joins the caller's; a message that is sent at the same time is kept
-- Example:     EXEC mq.drop_queue N'email';
CREATE OR ALTER PROCEDURE mq.drop_queue
    @type nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: the call needs the current rows, and a snapshot shows old ones.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @known smallint;
    DECLARE @grouped bit = 0, @holds bit;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        SET @name = @type;
        IF @own = 1
            BEGIN TRANSACTION;
        SET @known = mq_internal.is_known(@name);
        SELECT @grouped = grouped FROM mq.queue WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name;
        EXEC mq_internal.holds_messages @name, @grouped, @holds OUTPUT;
        IF @holds = 1 OR EXISTS (
            SELECT * FROM mq.dead WITH (READUNCOMMITTED, FORCESEEK, INDEX (dead_age)) WHERE type = @name
        )
            EXEC mq_internal.raise_error 'queue_not_empty', N'{} holds messages; purge them first', @name;
        -- A sender may have read the settings already. Claims take its message as after a change of the settings: see
        -- set_queue.
        DELETE FROM mq.queue_group WITH (ROWLOCK) WHERE type = @name;
        DELETE FROM mq.limited WITH (ROWLOCK) WHERE type = @name;
        DELETE FROM mq.freed WITH (ROWLOCK) WHERE type = @name;
        DELETE f FROM mq.group_freed AS f WITH (ROWLOCK, FORCESEEK, INDEX (group_freed_pk)) WHERE f.type = @name;
        DELETE b FROM mq.bucket AS b WITH (ROWLOCK, FORCESEEK, INDEX (bucket_pk)) WHERE b.type = @name;
        DELETE FROM mq.group_lock WITH (ROWLOCK) WHERE type = @name;
        DELETE FROM mq.mark WITH (ROWLOCK) WHERE type = @name;
        DELETE r FROM mq.ring AS r WITH (ROWLOCK, FORCESEEK, INDEX (ring_newest)) WHERE r.type = @name;
        DELETE FROM mq.queue WITH (ROWLOCK) WHERE type = @name;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @known AS known;
END;
