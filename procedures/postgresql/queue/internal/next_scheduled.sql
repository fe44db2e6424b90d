-- next_scheduled: the first type after a name that has a schedule: none. The area schedules replaces this.
CREATE OR REPLACE FUNCTION mq_internal.next_scheduled(p_after text, p_prefix text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END
$$;
