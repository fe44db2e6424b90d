-- set_queue: set the policy of a type; NULL leaves a setting as it is.
-- Arguments:   @type, @lease_seconds (at first 60), @max_attempts (10), @backoff_seconds (5), @backoff_max_seconds (3,600),
--              @on_complete (delete), @ordered (0), @notify (1)
-- Returns:     the policy as it is now
-- Errors:      50002 invalid_argument, 50004 queue_not_empty (ordered can change only without new and active messages)
-- Transaction: joins the caller's; calls for one type wait for each other, and claims of the type for the end of the transaction
--              where the database does not keep versions
-- Example:     EXEC mq.set_queue N'invoice', @max_attempts = 5, @on_complete = N'archive';

CREATE OR ALTER PROCEDURE mq.set_queue
    @type nvarchar(max),
    @lease_seconds bigint = NULL,
    @max_attempts bigint = NULL,
    @backoff_seconds bigint = NULL,
    @backoff_max_seconds bigint = NULL,
    @on_complete nvarchar(max) = NULL,
    @ordered bigint = NULL,
    @notify bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a limit of the session would hold in here too
    -- For as long as this call: it acts on what is there now, and a snapshot shows what was.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @was bit, @refused bit = 0, @step int = 1000, @took int = 1;
    BEGIN TRY
        EXEC mq.require_name 'type', @type, 0;
        SET @name = @type;
        EXEC mq.require_range 'lease_seconds', @lease_seconds, 0, 315360000;
        EXEC mq.require_range 'max_attempts', @max_attempts, 1, 1000;
        EXEC mq.require_range 'backoff_seconds', @backoff_seconds, 0, 315360000;
        EXEC mq.require_range 'backoff_max_seconds', @backoff_max_seconds, 0, 315360000;
        -- With something after it: a blank at the end would not count.
        IF (@on_complete + N'.') COLLATE Latin1_General_100_BIN2 NOT IN (N'delete.', N'archive.')
            EXEC mq.raise_error 'invalid_argument', N'on_complete: must be delete or archive';
        EXEC mq.require_range 'ordered', @ordered, 0, 1;
        EXEC mq.require_range 'notify', @notify, 0, 1;
        IF @own = 1
            BEGIN TRANSACTION;
        -- The range is locked as well: of two first calls for a type the second waits here, and finds the row then.
        SELECT @was = ordered FROM mq.queue WITH (UPDLOCK, HOLDLOCK, ROWLOCK) WHERE type = @name;
        IF @was IS NULL
        BEGIN
            INSERT INTO mq.queue (type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered,
                notify)
            SELECT @name, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify
            FROM mq.policy(@name);
            SELECT @was = ordered FROM mq.queue WHERE type = @name;
        END;
        IF @ordered <> @was
        BEGIN
            -- A row that is locked is a message on its way in or out: it counts, and waiting for it could end in a deadlock.
            BEGIN TRY
                IF EXISTS (SELECT * FROM mq.ready WITH (READCOMMITTEDLOCK, ROWLOCK, NOWAIT) WHERE type = @name)
                    SET @refused = 1;
                IF EXISTS (SELECT * FROM mq.delayed WITH (READCOMMITTEDLOCK, ROWLOCK, NOWAIT) WHERE type = @name)
                    SET @refused = 1;
                IF EXISTS (SELECT * FROM mq.batch WITH (READCOMMITTEDLOCK, ROWLOCK, NOWAIT) WHERE type = @name)
                    SET @refused = 1;
                IF @was = 1 AND EXISTS (SELECT * FROM mq.grouped WITH (READCOMMITTEDLOCK, ROWLOCK, NOWAIT) WHERE type = @name)
                    SET @refused = 1;
            END TRY
            BEGIN CATCH
                IF ERROR_NUMBER() <> 1222
                    THROW;
                SET @refused = 1;
            END CATCH;
            IF @refused = 1
                EXEC mq.raise_error 'queue_not_empty', N'ordered can change only while {} holds no new and no active message', @name;
            -- Left by a transaction that sent before the queue was no longer ordered, and committed after.
            WHILE @ordered = 1 AND @took > 0
            BEGIN
                DELETE TOP (@step) FROM mq.grouped WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name;
                SET @took = @@ROWCOUNT;
            END;
        END;
        UPDATE mq.queue
        SET lease_seconds = COALESCE(@lease_seconds, lease_seconds),
            max_attempts = COALESCE(@max_attempts, max_attempts),
            backoff_seconds = COALESCE(@backoff_seconds, backoff_seconds),
            backoff_max_seconds = COALESCE(@backoff_max_seconds, backoff_max_seconds),
            on_complete = COALESCE(@on_complete, on_complete),
            ordered = COALESCE(CAST(@ordered AS bit), ordered),
            notify = COALESCE(CAST(@notify AS bit), notify)
        WHERE type = @name;
        -- A queue that does not archive keeps no results.
        SET @took = 1;
        WHILE @on_complete = N'delete' AND @took > 0
        BEGIN
            DELETE TOP (@step) k
            FROM mq.result AS k WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            INNER JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = k.id
            WHERE m.type = @name
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SET @took = @@ROWCOUNT;
        END;
        SELECT type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete,
            CAST(ordered AS smallint) AS ordered, CAST(notify AS smallint) AS notify, CAST(paused AS smallint) AS paused
        FROM mq.queue
        WHERE type = @name;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;
GO
