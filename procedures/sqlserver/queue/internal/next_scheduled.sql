-- next_scheduled: no type. The area schedules has its own version: the first type after a name that has a schedule.
CREATE OR ALTER FUNCTION mq_internal.next_scheduled (@after nvarchar(400), @lowest nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT CAST(N'' AS nvarchar(400)) COLLATE Latin1_General_100_BIN2 AS type WHERE 1 = 0;
