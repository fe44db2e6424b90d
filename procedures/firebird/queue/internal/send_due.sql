-- send_due: send the messages that the queue sends by itself: none. The area schedules replaces this.
CREATE OR ALTER PROCEDURE imq_send_due (p_type mq_name, p_size integer)
AS
BEGIN
END
