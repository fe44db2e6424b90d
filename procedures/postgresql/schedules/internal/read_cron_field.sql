-- read_cron_field: the values that one field of a cron expression matches.
-- Arguments: p_names (three letters per value, from the first value on; NULL: the field has no names)
-- Returns: places: a text of p_high + 1 digits; the n-th is 1 if the value n - 1 matches, else 0
CREATE OR REPLACE FUNCTION mq_internal.read_cron_field(
    p_name text, p_field text, p_low integer, p_high integer, p_names text, OUT places text
)
LANGUAGE plpgsql AS $$
DECLARE
    v_item text;
    v_parts text[];
    v_first integer;
    v_last integer;
    v_step integer;
BEGIN
    places := repeat('0', p_high + 1);
    FOREACH v_item IN ARRAY string_to_array(upper(p_field), ',') LOOP
        v_parts := regexp_match(v_item, '^([*]|[0-9]{1,2}|[A-Z]{3})(-([0-9]{1,2}|[A-Z]{3}))?(/([0-9]{1,2}))?$');
        v_first := CASE WHEN v_parts[1] = '*' THEN p_low ELSE mq_internal.cron_value(v_parts[1], p_low, p_names) END;
        v_last := CASE
            WHEN v_parts[3] IS NOT NULL THEN mq_internal.cron_value(v_parts[3], p_low, p_names)
            WHEN v_parts[1] = '*' OR v_parts[5] IS NOT NULL THEN p_high
            ELSE v_first
        END;
        -- Sunday is also 7, so SUN can end a range.
        IF p_high = 7 AND v_last = 0 AND v_first > 0 THEN
            v_last := 7;
        END IF;
        v_step := coalesce(v_parts[5]::integer, 1);
        IF (v_first BETWEEN p_low AND v_last AND v_last <= p_high AND v_step > 0) IS NOT true
            OR v_parts[1] = '*' AND v_parts[3] IS NOT NULL
        THEN
            PERFORM mq_internal.raise_error('invalid_argument', format(
                'cron: %s: %s must be *, a value or a range of %s to %s, with or without /step', p_name, v_item, p_low, p_high));
        END IF;
        FOR v_value IN v_first..v_last BY v_step LOOP
            places := overlay(places PLACING '1' FROM v_value + 1 FOR 1);
        END LOOP;
    END LOOP;
END
$$;
