-- put_off: delay the first message of a group until the group's next token.
-- Arguments:   @type, @group_key, @id and @attempts (the message), @run_at (the time of the token)
-- Transaction: joins the caller's, which holds the group's application lock
--
-- The message waits like a failed message of an ordered queue: it is delayed and its row in mq.group_lock blocks the group
-- until promote.

CREATE OR ALTER PROCEDURE mq_internal.put_off
    @type nvarchar(400),
    @group_key nvarchar(400),
    @id bigint,
    @attempts smallint,
    @run_at datetime2(7)
AS
BEGIN
    INSERT INTO mq.group_lock (type, group_key, id, blocks) VALUES (@type, @group_key, @id, 1);
    DELETE FROM mq.grouped WHERE id = @id;
    UPDATE mq.message SET sent_run_at = COALESCE(sent_run_at, run_at), run_at = @run_at WHERE id = @id;
    INSERT INTO mq.delayed (type, run_at, id, priority, attempts)
    SELECT @type, @run_at, @id, priority, @attempts FROM mq.message WHERE id = @id;
END;
GO
