-- holds_messages: whether a type has new or active messages.
-- Arguments: @type, @grouped (the policy)
-- Returns: @holds: 1 or 0. A locked row is a message that is being added or removed: it counts as a message, because
--     waiting for it could deadlock
CREATE OR ALTER PROCEDURE mq_internal.holds_messages
    @type nvarchar(400), @grouped bit, @holds bit OUTPUT
AS
BEGIN
    SET XACT_ABORT OFF; -- error 1222 would end the caller's transaction
    SET @holds = 0;
    BEGIN TRY
        IF EXISTS (SELECT * FROM mq.ready WITH (ROWLOCK, READCOMMITTEDLOCK, NOWAIT) WHERE type = @type)
            OR EXISTS (SELECT * FROM mq.delayed WITH (ROWLOCK, READCOMMITTEDLOCK, NOWAIT) WHERE type = @type)
            OR EXISTS (
                SELECT * FROM mq.batch WITH (ROWLOCK, READCOMMITTEDLOCK, NOWAIT, FORCESEEK, INDEX (batch_lease)) WHERE type = @type
            )
            SET @holds = 1;
        IF @grouped = 1 AND EXISTS (
            SELECT * FROM mq.grouped WITH (ROWLOCK, READCOMMITTEDLOCK, NOWAIT, FORCESEEK, INDEX (grouped_order)) WHERE type = @type
        )
            SET @holds = 1;
    END TRY
    BEGIN CATCH
        IF ERROR_NUMBER() <> 1222
            THROW;
        SET @holds = 1;
    END CATCH;
END;
