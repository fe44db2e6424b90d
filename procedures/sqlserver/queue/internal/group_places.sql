-- group_places: how many places of a group are taken, in a queue with limits per group and without order, and how many
--     it has.
-- Returns: one row: taken (uncommitted changes of others may be missing), places (0: no limit)
CREATE OR ALTER FUNCTION mq_internal.group_places (@type nvarchar(400), @group_key nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT (
        SELECT COUNT(*) FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND group_key = @group_key AND blocks = 0
    ) - (
        -- An uncommitted row is locked and skipped: its place still counts as taken.
        SELECT COUNT(*) FROM mq.group_freed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (group_freed_pk))
        WHERE type = @type AND group_key = @group_key
    ) AS taken, l.places
    FROM mq_internal.group_limits(@type, @group_key) AS l;
