-- save_position: save the position where a claim stopped, and delete older positions.
-- Arguments: @type, @consumer (of a ring; in a fair queue the priority), @n, @after_id, @lane and @taken (the round, the
--     last id or lane, and how many messages of its turn were taken), @old_n, @old_after_id and @old_lane (the position
--     that the claim read; NULL: there was none)
--
-- A position is inserted, not updated: no session waits for it. When two claims start at the same position, the
-- position further ahead counts, in whichever order they commit. The position that the claim read stays: until this
-- transaction commits, it is the only one that others see. Older ones are deleted up to twenty times as far back as
-- this claim went: simultaneous claims may have left some.
CREATE OR ALTER PROCEDURE mq_internal.save_position
    @type nvarchar(400), @consumer nvarchar(400), @n bigint, @after_id bigint, @lane nvarchar(37), @taken int,
    @old_n bigint, @old_after_id bigint, @old_lane nvarchar(37)
AS
BEGIN
    DECLARE @claims int = 20, @from bigint = 0;
    INSERT INTO mq.ring (type, consumer, n, after_id, lane, taken) VALUES (@type, @consumer, @n, @after_id, @lane, @taken);
    IF @n = @old_n AND @old_after_id / @claims > @after_id - @old_after_id
        SET @from = @old_after_id - @claims * (@after_id - @old_after_id);
    DELETE r
    FROM mq.ring AS r WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
    WHERE r.type = @type AND r.consumer = @consumer AND r.n = @old_n AND r.after_id BETWEEN @from AND @old_after_id
        AND (r.after_id < @old_after_id OR r.lane < @old_lane);
    DELETE r
    FROM mq.ring AS r WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
    WHERE r.type = @type AND r.consumer = @consumer AND r.n < @old_n AND r.n >= @old_n - 1 - @claims * (@n - @old_n);
END;
