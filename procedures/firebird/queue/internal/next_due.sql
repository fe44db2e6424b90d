-- next_due: when the next message that the queue sends by itself is due; NULL: none is. The area schedules replaces this.
CREATE OR ALTER FUNCTION imq_next_due (p_type mq_name)
RETURNS timestamp
AS
BEGIN
    RETURN NULL;
END
