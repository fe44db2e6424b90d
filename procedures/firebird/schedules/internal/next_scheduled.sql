-- next_scheduled: the first type from a name on, but not a given one, that has a schedule; NULL: none.
--
-- Replaces the file of the same name in queue/internal.
CREATE OR ALTER FUNCTION imq_next_scheduled (p_from mq_name, p_past mq_name)
RETURNS mq_name
AS
BEGIN
    RETURN (
        SELECT FIRST 1 s.type FROM mq_schedule AS s WHERE s.type >= :p_from AND s.type <> :p_past
        PLAN (s ORDER mq_schedule_due)
        ORDER BY s.type, s.next_at
    );
END
