-- send_due: nothing. The area schedules has its own version, which sends the messages that are due.
CREATE OR ALTER PROCEDURE mq_internal.send_due
    @type nvarchar(400), @size int
AS
BEGIN
    RETURN;
END;
