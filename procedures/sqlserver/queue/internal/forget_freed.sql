-- forget_freed: delete the records of freed places of a group.
-- Returns: @changed: 1 when there were any; then the caller must keep the group's lock until it commits
-- Transaction: the caller's holds the group's application lock; skips rows that are not committed
CREATE OR ALTER PROCEDURE mq_internal.forget_freed
    @type nvarchar(400), @group_key nvarchar(400), @changed bit OUTPUT
AS
BEGIN
    DECLARE @step int = 1000, @took int = 1000;
    DECLARE @freed mq.items;
    SET @changed = 0;
    WHILE @took = @step
    BEGIN
        DELETE FROM @freed;
        DELETE TOP (@step) f
        OUTPUT deleted.id, 0 INTO @freed (id, attempts)
        FROM mq.group_freed AS f WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (group_freed_pk))
        WHERE f.type = @type AND f.group_key = @group_key;
        SET @took = @@ROWCOUNT;
        IF @took > 0
        BEGIN
            SET @changed = 1;
            DELETE l
            FROM @freed AS f
            INNER JOIN mq.group_lock AS l WITH (ROWLOCK) ON l.id = f.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        END;
    END;
END;
