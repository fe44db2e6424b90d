-- settled_place: return the order value up to which rows of a table without a status may be claimed.
-- Arguments: @pieces (see pick_rows), @name (of the polling table; the caller has locked its low-water mark), @now
-- Returns: @settled: the highest order value of late_seconds ago, as text; NULL when there is none yet
CREATE OR ALTER PROCEDURE mq_internal.settled_place
    @pieces mq.pieces READONLY, @name nvarchar(400), @now datetime2(7), @settled nvarchar(4000) OUTPUT
AS
BEGIN
    DECLARE @late int, @seen datetime2(7), @before datetime2(7), @statement nvarchar(max);
    SELECT @late = late_seconds FROM mq.polled WHERE name = @name;
    -- Delete marks in the future: the clock was set back, and they would stop all claims until it catches up.
    DELETE FROM mq.polled_mark WHERE name = @name AND seen_at > @now;
    SELECT @seen = MAX(seen_at) FROM mq.polled_mark WHERE name = @name;
    SET @settled = NULL;
    IF @late = 0 OR @seen IS NULL OR @seen <= DATEADD(SECOND, -CASE WHEN @late > 10 THEN @late / 10 ELSE 1 END, @now)
    BEGIN
        -- Uncommitted rows are skipped.
        SET @statement = mq_internal.fill(N'SELECT TOP (1) @settled = {order_text}
FROM {table} AS t WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK{hint})
ORDER BY t.{order} DESC
OPTION (KEEPFIXED PLAN);', @pieces);
        EXEC sp_executesql @statement, N'@settled nvarchar(4000) OUTPUT', @settled = @settled OUTPUT;
        IF @late = 0
            RETURN;
        IF @settled IS NOT NULL
            INSERT INTO mq.polled_mark (name, seen_at, place) VALUES (@name, @now, @settled);
        SET @settled = NULL;
    END;
    SELECT TOP (1) @settled = place, @before = seen_at
    FROM mq.polled_mark
    WHERE name = @name AND seen_at <= DATEADD(SECOND, -@late, @now)
    ORDER BY seen_at DESC;
    IF @settled IS NOT NULL
        DELETE FROM mq.polled_mark WHERE name = @name AND seen_at < @before;
END;
