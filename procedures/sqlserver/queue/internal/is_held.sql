-- is_held: whether an open transaction holds a message of a batch; if not, none can until the caller's transaction ends.
-- Arguments: @key (the batch, whose row the caller has locked)
-- Returns: @held: 1 if so
CREATE OR ALTER PROCEDURE mq_internal.is_held
    @key uniqueidentifier, @held bit OUTPUT
AS
BEGIN
    DECLARE @step int = 1000, @took int = 1000, @skipped int, @after bigint = 0;
    SET @held = 0;
    WHILE @took = @step AND @held = 0
    BEGIN
        SELECT @took = COUNT(*), @skipped = SUM(CASE WHEN m.id IS NULL THEN 1 ELSE 0 END), @after = MAX(c.id)
        FROM (SELECT TOP (@step) id FROM mq.claimed WHERE batch_key = @key AND id > @after ORDER BY id) AS c
        LEFT JOIN mq.message AS m WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = c.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF @skipped > 0
            SET @held = 1;
    END;
END;
