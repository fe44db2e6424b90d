-- place: where a message belongs in mq.ready.
-- Arguments: @ring, @fair and @grouped (the policy), @priority, @group_key (NULL: none) and @run_at of the message
-- Returns: one row: priority, lane, run_at
--
-- The primary key of mq.ready is the order of the claims, because a second index would make every send and claim of all
-- queues more expensive. In a ring all messages have one priority and time, so they are in order of id. In a fair queue
-- the lane is the group: its key if that has up to 20 characters, else its beginning and a hash, because a clustered
-- key has at most 900 bytes. A group's messages are in order of id. Tickets keep their run_at: a message may have
-- several.
CREATE OR ALTER FUNCTION mq_internal.place (
    @ring bit, @fair bit, @grouped bit, @priority smallint, @group_key nvarchar(400), @run_at datetime2(7)
)
RETURNS TABLE
AS
RETURN
    SELECT CAST(CASE @ring WHEN 1 THEN -32768 ELSE @priority END AS smallint) AS priority,
        CAST(CASE
            WHEN @fair = 0 THEN N'-'
            WHEN DATALENGTH(@group_key) > 40 THEN CONCAT(N'.', LEFT(@group_key COLLATE Latin1_General_100_BIN2, 8),
                CAST(SUBSTRING(HASHBYTES('SHA2_256', @group_key), 1, 8) AS bigint))
            ELSE CONCAT(N'.', @group_key)
        END AS nvarchar(37)) COLLATE Latin1_General_100_BIN2 AS lane,
        CASE WHEN @ring = 1 OR (@fair = 1 AND @grouped = 0) THEN CAST('0001-01-01' AS datetime2(7)) ELSE @run_at END AS run_at;
