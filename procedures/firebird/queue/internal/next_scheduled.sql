-- next_scheduled: NULL: the core has no schedules. The area schedules replaces this.
CREATE OR ALTER FUNCTION imq_next_scheduled (p_from mq_name, p_past mq_name)
RETURNS mq_name
AS
BEGIN
    RETURN NULL;
END
