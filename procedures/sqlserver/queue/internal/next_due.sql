-- next_due: NULL. The area schedules has its own version: when the next message of a schedule is due.
CREATE OR ALTER FUNCTION mq_internal.next_due (@type nvarchar(400))
RETURNS datetime2(7)
AS
BEGIN
    RETURN NULL;
END;
