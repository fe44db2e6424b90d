-- next_due: when the next schedule of a type is due, or NULL; the area schedules replaces this function.

CREATE OR REPLACE FUNCTION mq_internal.next_due(
    p_type text
) RETURNS timestamptz
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN NULL;
END
$$;
