-- next_due: when the next message that the queue sends by itself is due; NULL: none is. The area schedules replaces
--     this.
CREATE OR REPLACE FUNCTION mq_internal.next_due(p_type text) RETURNS timestamptz
LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END
$$;
