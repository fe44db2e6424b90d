-- places: the places in mq.ready where a message may be: the plain one, that of a ring, and those of a fair queue.
-- Arguments: @priority, @group_key (NULL: none) and @run_at of the message
-- Returns: four rows: priority, lane, run_at
--
-- While ring or fair is switched, and after a rollback, some messages are not at the place that the policy says.
CREATE OR ALTER FUNCTION mq_internal.places (@priority smallint, @group_key nvarchar(400), @run_at datetime2(7))
RETURNS TABLE
AS
RETURN
    SELECT p.priority, p.lane, p.run_at
    FROM (VALUES (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, 1)) AS k (ring, fair, grouped)
    CROSS APPLY mq_internal.place(k.ring, k.fair, k.grouped, @priority, @group_key, @run_at) AS p;
