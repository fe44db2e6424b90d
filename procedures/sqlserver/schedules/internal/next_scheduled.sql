-- next_scheduled: the first type after a name, and not before another one, that has a schedule.
CREATE OR ALTER FUNCTION mq_internal.next_scheduled (@after nvarchar(400), @lowest nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT TOP (1) type FROM mq.schedule WHERE type > @after AND type >= @lowest ORDER BY type;
