-- place: where a message belongs in mq.ready.
-- Arguments:   @ring, @fair and @grouped (the policy), @priority, @group_key (NULL: none) and @run_at of the message
-- Returns:     one row: priority, lane, run_at
--
-- The primary key of mq.ready is the order of the claims, because a second index would make every send and claim of all
-- queues more expensive. In a ring all messages have one priority and time, so they are in order of id. In a fair queue a
-- lane is a hash of the group_key, and a group's messages are in order of id.
-- Tickets keep their run_at: a message may have several. Lanes are 1 to 2^56, so they can be subtracted.

CREATE OR ALTER FUNCTION mq_internal.place (
    @ring bit, @fair bit, @grouped bit, @priority smallint, @group_key nvarchar(400), @run_at datetime2(7)
)
RETURNS TABLE
AS
RETURN
    SELECT CAST(CASE @ring WHEN 1 THEN -32768 ELSE @priority END AS smallint) AS priority,
        CASE @fair
            WHEN 1 THEN 1 + CAST(SUBSTRING(HASHBYTES('SHA2_256', COALESCE(@group_key, N'')), 1, 7) AS bigint)
            ELSE CAST(0 AS bigint)
        END AS lane,
        CASE WHEN @ring = 1 OR (@fair = 1 AND @grouped = 0) THEN CAST('0001-01-01' AS datetime2(7)) ELSE @run_at END AS run_at;
GO
