-- group_places: how many places the messages of a group take in a queue with limits by group and without order.
-- Arguments:   @type, @group_key
-- Returns:     taken: one row; what others are changing at this moment may be missing
-- Errors:      none
-- Transaction: reads only, at READ COMMITTED, and waits for nobody
-- Example:     SELECT taken FROM mq.group_places(N'invoice', N'customer-7');

CREATE OR ALTER FUNCTION mq.group_places (@type nvarchar(400), @group_key nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT (
        SELECT COUNT(*) FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND group_key = @group_key AND blocks = 0
    ) - (
        -- A row that is not committed is locked: its place is still taken.
        SELECT COUNT(*) FROM mq.group_freed WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @type AND group_key = @group_key
    ) AS taken;
GO
