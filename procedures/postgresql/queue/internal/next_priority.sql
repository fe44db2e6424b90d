-- next_priority: refuse a claim of a fair queue. The area fair replaces this.
CREATE OR REPLACE FUNCTION mq_internal.next_priority(p_type text, p_after text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mq_internal.require_area('fair');
END
$$;
