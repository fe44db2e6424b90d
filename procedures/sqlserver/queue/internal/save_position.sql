-- save_position: save the position of a round-robin reader, and delete its older positions.
-- Arguments:   @type, @reader, @size (of the claim), @n and @after_id (the round and the last id), @old_n and @old_after_id
--              (the position that the claim read; NULL: there was none)
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
--
-- A position is inserted, not updated: no session waits for it. When two claims of one reader start at the same position,
-- the position further ahead counts, in whichever order they commit. The position that the claim read stays: until this
-- transaction commits, it is the only one that others see. Positions shortly before it are deleted, and after the end of a
-- round the last positions of the previous one.

CREATE OR ALTER PROCEDURE mq_internal.save_position
    @type nvarchar(400),
    @reader nvarchar(400),
    @size int,
    @n bigint,
    @after_id bigint,
    @old_n bigint,
    @old_after_id bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Delete positions up to this many claims back: concurrent claims of this reader may have left some.
    DECLARE @claims int = 20;
    INSERT INTO mq.ring (type, reader, n, after_id) VALUES (@type, @reader, @n, @after_id);
    IF @n = @old_n
        DELETE r
        FROM mq.ring AS r WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
        WHERE r.type = @type AND r.reader = @reader AND (
            (r.n = @old_n AND r.after_id < @old_after_id AND r.after_id >= @old_after_id - @claims * @size) OR r.n = @old_n - 1
        );
    ELSE
        DELETE r
        FROM mq.ring AS r WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
        WHERE r.type = @type AND r.reader = @reader AND r.n <= @old_n AND r.n >= @old_n - 1
            AND (r.n < @old_n OR r.after_id < @old_after_id);
END;
GO
