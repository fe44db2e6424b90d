-- send_due: send the messages that the queue sends by itself: none. The area schedules replaces this.
CREATE OR REPLACE FUNCTION mq_internal.send_due(p_type text, p_size bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
END
$$;
