-- erase_archived: delete archived messages of a queue, the oldest first.
-- Arguments: @before (only messages completed earlier), @size (the most messages to delete)
-- Returns: @count: the number of deleted messages
-- Transaction: joins the caller's, which is READ COMMITTED; skips rows that another call is deleting
CREATE OR ALTER PROCEDURE mq_internal.erase_archived
    @type nvarchar(400), @before datetime2(7), @size int, @count bigint OUTPUT
AS
BEGIN
    DECLARE @step int = 1000, @top int, @took int = 1;
    DECLARE @found TABLE (completed_at datetime2(7) NOT NULL, id bigint NOT NULL, PRIMARY KEY (completed_at, id));
    SET @count = 0;
    WHILE @took > 0 AND @count < @size
    BEGIN
        DELETE FROM @found;
        SET @top = CASE WHEN @size - @count < @step THEN @size - @count ELSE @step END;
        -- First the keys, without holding locks, then the rows by their primary key: two calls that lock rows of one
        -- table through two indexes deadlock.
        INSERT INTO @found (completed_at, id)
        SELECT TOP (@top) completed_at, id
        FROM mq.archive WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (archive_type))
        WHERE type = @type AND completed_at < @before
        ORDER BY completed_at, id;
        DELETE a
        FROM @found AS f
        INNER JOIN mq.archive AS a WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            ON a.completed_at = f.completed_at AND a.id = f.id
        OPTION (FORCE ORDER, LOOP JOIN);
        SET @took = @@ROWCOUNT;
        SET @count = @count + @took;
    END;
END;
