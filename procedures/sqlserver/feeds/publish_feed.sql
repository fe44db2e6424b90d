-- publish_feed: number up to @size rows whose sync column is NULL.
-- Arguments:   @feed (1 to 200 characters), @size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: rows numbered
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's and locks the feed's counter until it ends; publishers of one feed, and writers of the
--              numbered rows, wait for its end; skips rows that writers have locked
-- Example:     EXEC mq.publish_feed N'orders', 500;
--
-- Numbers are assigned under the lock of the feed's counter, which is kept until the commit. So they become visible in their
-- order, and a rollback gives them back. The rows are found without keeping a lock (s) and then locked by their key (b), as
-- writers do. Rows that a writer has locked by then are skipped.
CREATE OR ALTER PROCEDURE mq.publish_feed
    @feed nvarchar(max),
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @id nvarchar(400), @object_id int, @quoted nvarchar(600);
    DECLARE @keys nvarchar(4000), @sync nvarchar(300), @hint nvarchar(300);
    DECLARE @found bit = 0, @last bigint, @left int, @top int, @took int = 1, @count bigint = 0, @statement nvarchar(max);
    DECLARE @picked nvarchar(max), @order nvarchar(max), @locked nvarchar(max), @numbered nvarchar(max);
    DECLARE @check nvarchar(max), @kept int;
    DECLARE @n int = 1, @column nvarchar(300), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @pieces mq.pieces;
    BEGIN TRY
        EXEC mq_internal.require_name 'feed', @feed, 0;
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        SELECT @id = @feed, @left = COALESCE(@size, 1000);
        EXEC mq_internal.find_feed @id, 1, @object_id OUTPUT, @quoted OUTPUT, @keys OUTPUT, @sync OUTPUT, @hint OUTPUT;
        INSERT INTO @pieces (name, piece) VALUES ('table', @quoted), ('sync', @sync), ('hint', @hint);
        SET @statement = mq_internal.fill(N'IF EXISTS (SELECT * FROM {table} WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK{hint}) WHERE {sync} IS NULL)
    SET @found = 1;', @pieces);
        EXEC sp_executesql @statement, N'@found bit OUTPUT', @found = @found OUTPUT;
        IF @found = 1
        BEGIN
            WHILE @n > 0
            BEGIN
                SET @column = NULL;
                SELECT @column = quoted FROM mq_internal.columns_of(@object_id, @keys) WHERE n = @n;
                IF @column IS NULL
                    BREAK;
                SELECT @picked = CONCAT(@picked + N', ', N'b.', @column, N' AS k', @n),
                    @order = CONCAT(@order + N', ', N'p.k', @n),
                    @locked = CONCAT(@locked + N' AND ', N'b.', @column, N' = s.', @column),
                    @numbered = CONCAT(@numbered + N' AND ', N'u.', @column, N' = f.k', @n);
                SET @n = @n + 1;
            END;
            INSERT INTO @pieces (name, piece)
            VALUES ('picked', @picked), ('order', @order), ('locked', @locked), ('numbered', @numbered);
            SET @statement = mq_internal.fill(N'UPDATE u
SET {sync} = @last + f.n
FROM (
    SELECT {order}, ROW_NUMBER() OVER (ORDER BY {order}) AS n
    FROM (
        SELECT TOP (@top) {picked}
        FROM {table} AS s WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK{hint})
        INNER JOIN {table} AS b WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON {locked}
        WHERE s.{sync} IS NULL AND b.{sync} IS NULL
    ) AS p
) AS f
INNER JOIN {table} AS u WITH (ROWLOCK) ON {numbered}
OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
SET @took = @@ROWCOUNT;', @pieces);
            SET @check = mq_internal.fill(N'SELECT @kept = COUNT(*) FROM {table} WITH (ROWLOCK, READCOMMITTEDLOCK{hint})
WHERE {sync} > @last AND {sync} <= @last + @took;', @pieces);
            IF @own = 1
                BEGIN TRANSACTION;
            SELECT @last = last_number FROM mq.feed_counter WITH (UPDLOCK, ROWLOCK) WHERE feed = @id;
            IF @last IS NULL
                EXEC mq_internal.raise_error 'not_found', N'feed: there is no feed {}', @id;
            WHILE @left > 0 AND @took > 0
            BEGIN
                SET @top = CASE WHEN @left < 1000 THEN @left ELSE 1000 END;
                EXEC sp_executesql @statement, N'@last bigint, @top int, @took int OUTPUT', @last = @last, @top = @top,
                    @took = @took OUTPUT;
                -- A trigger of the table may have removed a number. Always check: only the table's owner can see triggers in
                -- the catalog.
                IF @took > 0
                    EXEC sp_executesql @check, N'@last bigint, @took int, @kept int OUTPUT', @last = @last, @took = @took,
                        @kept = @kept OUTPUT;
                IF @kept < @took
                    EXEC mq_internal.raise_error 'unsuitable_table',
                        N'a trigger of {} prevents numbering: it must not set the sync column', @quoted;
                SELECT @last = @last + @took, @count = @count + @took, @left = @left - @took;
                IF @took < @top
                    SET @took = 0;
            END;
            IF @count > 0
                UPDATE mq.feed_counter SET last_number = @last WHERE feed = @id;
            IF @own = 1
                COMMIT TRANSACTION;
        END;
        SELECT @count AS affected;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;
