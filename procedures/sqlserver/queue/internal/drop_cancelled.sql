-- drop_cancelled: of messages whose attempt has ended, but not as done, delete those that were cancelled.
-- Arguments: @type, @items (at most 1,000)
-- Transaction: locks the messages: no other session cancels one of them until the caller's transaction ends
CREATE OR ALTER PROCEDURE mq_internal.drop_cancelled
    @type nvarchar(400), @items mq.items READONLY
AS
BEGIN
    DECLARE @some int, @count bigint;
    DECLARE @cancelled mq.items;
    -- Without a condition on the messages, because the lock of a row that does not fulfil it may be released at once.
    SELECT @some = SUM(CASE WHEN m.cancelled_at IS NULL THEN 0 ELSE 1 END)
    FROM @items AS i
    INNER JOIN mq.message AS m WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) ON m.id = i.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    IF @some > 0
    BEGIN
        INSERT INTO @cancelled (id, attempts)
        SELECT i.id, i.attempts
        FROM @items AS i
        INNER JOIN mq.message AS m ON m.id = i.id
        WHERE m.cancelled_at IS NOT NULL
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        EXEC mq_internal.erase @type, @cancelled, 'A', @count OUTPUT;
    END;
END;
