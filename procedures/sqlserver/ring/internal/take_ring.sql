-- take_ring: move ready messages of a ring into a batch in order of id, and skip messages that another transaction has
--     locked.
-- Arguments: @type, @after_id and @to_id (ids above @after_id, up to @to_id), @part (0 or 1: the first or second part
--     of the claim), @size (maximum number of messages), @batch_key
-- Returns: @took: number of new rows of mq.claimed; their priority is @part
CREATE OR ALTER PROCEDURE mq_internal.take_ring
    @type nvarchar(400), @after_id bigint, @to_id bigint, @part smallint, @size int, @batch_key uniqueidentifier,
    @took int OUTPUT
AS
BEGIN
    DECLARE @start datetime2(7) = '0001-01-01', @step int = 1000, @top int, @moved int;
    SET @took = 0;
    WHILE @took < @size
    BEGIN
        SET @top = CASE WHEN @size - @took < @step THEN @size - @took ELSE @step END;
        DELETE r
        OUTPUT @batch_key, deleted.id, deleted.attempts + 1, @part, @start
        INTO mq.claimed (batch_key, id, attempt, priority, run_at)
        FROM (
            SELECT TOP (@top) type, priority, lane, run_at, id
            FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority = -32768 AND lane = N'-' AND run_at = @start AND id > @after_id AND id <= @to_id
            ORDER BY priority, lane, run_at, id
        ) AS f
        INNER JOIN mq.ready AS r WITH (ROWLOCK)
            ON r.type = f.type AND r.priority = f.priority AND r.lane = f.lane AND r.run_at = f.run_at AND r.id = f.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SET @moved = @@ROWCOUNT;
        SET @took = @took + @moved;
        IF @moved < @top
            BREAK;
    END;
END;
