-- ready_row: the row of one message in mq.ready; no row when it has none at one of its places.
-- Returns: id, attempts
CREATE OR ALTER FUNCTION mq_internal.ready_row (
    @type nvarchar(400), @id bigint, @priority smallint, @group_key nvarchar(400), @run_at datetime2(7)
)
RETURNS TABLE
AS
RETURN
    -- One of several tickets is enough.
    SELECT TOP (1) r.id, r.attempts
    FROM mq_internal.places(@priority, @group_key, @run_at) AS p
    INNER JOIN mq.ready AS r ON r.type = @type AND r.priority = p.priority AND r.lane = p.lane AND r.run_at = p.run_at AND r.id = @id;
