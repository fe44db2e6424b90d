-- next_due: when the next schedule of a type is due; NULL: none is.
--
-- Replaces the file of the same name in queue/internal.
CREATE OR ALTER FUNCTION imq_next_due (p_type mq_name)
RETURNS timestamp
AS
BEGIN
    -- The lower bound excludes NULL, which sorts first.
    RETURN (
        SELECT s.next_at FROM mq_schedule AS s WHERE s.type = :p_type AND s.next_at > '1900-01-01'
        PLAN (s ORDER mq_schedule_due)
        ORDER BY s.type, s.next_at
        ROWS 1
    );
END
