-- set_group: give one group of a queue its own share or its own limits.
-- Arguments:   @type, @group_key (1 to 200 characters); the settings of the group, NULL: as the queue: @weight (messages per
--              turn of a fair queue, 1 to 1,000), @max_active and @rate (0 to 1,000,000; 0: no limit), @rate_seconds (1 to
--              86,400); all four NULL: the group has nothing of its own
-- Returns:     known (0: nothing had this name before)
-- Errors:      50002 invalid_argument, 50004 queue_not_empty (the first limit of a queue without limits per group)
-- Transaction: joins the caller's; waits for other calls that set this queue; without READ_COMMITTED_SNAPSHOT claims of the
--              type wait until the transaction ends
-- Example:     EXEC mq.set_group N'invoice', N'customer-7', @weight = 3;
CREATE OR ALTER PROCEDURE mq.set_group
    @type nvarchar(max),
    @group_key nvarchar(max),
    @weight bigint = NULL,
    @max_active bigint = NULL,
    @rate bigint = NULL,
    @rate_seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @name nvarchar(400), @group nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @ordered bit, @ring bit, @grouped bit, @holds bit, @lane nvarchar(37), @took int = 1, @known smallint;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        EXEC mq_internal.require_name 'group_key', @group_key, 0;
        EXEC mq_internal.require_range 'weight', @weight, 1, 1000;
        EXEC mq_internal.require_range 'max_active', @max_active, 0, 1000000;
        EXEC mq_internal.require_range 'rate', @rate, 0, 1000000;
        EXEC mq_internal.require_range 'rate_seconds', @rate_seconds, 1, 86400;
        SELECT @name = @type, @group = @group_key;
        SELECT @lane = lane FROM mq_internal.place(0, 1, 0, 0, @group, NULL);
        IF @own = 1
            BEGIN TRANSACTION;
        SET @known = mq_internal.is_known(@name);
        EXEC mq_internal.add_queue @name;
        SELECT @ordered = ordered, @ring = ring, @grouped = grouped FROM mq.queue WHERE type = @name;
        IF @ordered = 1 AND @max_active > 1
            EXEC mq_internal.raise_error 'invalid_argument', N'max_active: must be 0 or 1 on an ordered queue';
        IF @max_active > 0 OR @rate > 0
        BEGIN
            IF @ring = 1
                EXEC mq_internal.raise_error 'invalid_argument', N'max_active, rate: a ring cannot be combined with limits per group';
            IF @grouped = 0
            BEGIN
                EXEC mq_internal.holds_messages @name, 0, @holds OUTPUT;
                IF @holds = 1
                    EXEC mq_internal.raise_error 'queue_not_empty',
                        N'a first limit per group can be added only while {} holds no new and no active message', @name;
                -- Rows of a transaction that sent while the queue still had groups, and committed after it had none.
                WHILE @took > 0
                BEGIN
                    DELETE TOP (1000) FROM mq.grouped WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name;
                    SET @took = @@ROWCOUNT;
                END;
                UPDATE mq.queue SET grouped = 1 WHERE type = @name;
            END;
        END;
        DELETE g
        FROM mq.queue_group AS g WITH (ROWLOCK, FORCESEEK, INDEX (queue_group_lane))
        WHERE g.type = @name AND g.lane = @lane AND g.group_key = @group;
        IF COALESCE(@weight, @max_active, @rate, @rate_seconds) IS NOT NULL
            INSERT INTO mq.queue_group (type, lane, group_key, weight, max_active, rate, rate_seconds)
            VALUES (@name, @lane, @group, @weight, @max_active, @rate, @rate_seconds);
        IF @grouped = 1
            EXEC mq_internal.rebuild_groups @name;
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
