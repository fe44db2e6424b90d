-- send_due: send the messages of due schedules; the area schedules replaces this function.

CREATE OR REPLACE FUNCTION mq_internal.send_due(
    p_type text,
    p_size bigint
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    NULL;
END
$$;
