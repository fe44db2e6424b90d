-- cron_value: the number of a value or name in a cron expression.
-- Arguments: p_value (digits, or a name in capitals), p_low (the number of the first name), p_names (three letters per
--     name; NULL: the field has no names)
CREATE OR REPLACE FUNCTION mq_internal.cron_value(p_value text, p_low integer, p_names text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_place integer := strpos(p_names, p_value) - 1;
BEGIN
    IF p_value ~ '^[0-9]+$' THEN
        RETURN p_value::integer;
    END IF;
    RETURN CASE WHEN v_place >= 0 AND v_place % 3 = 0 THEN p_low + v_place / 3 END;
END
$$;
