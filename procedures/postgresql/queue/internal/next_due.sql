-- next_due: when the queue sends the next message by itself: never. The area schedules replaces this.
CREATE OR REPLACE FUNCTION mq_internal.next_due(p_type text) RETURNS timestamptz
LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END
$$;
