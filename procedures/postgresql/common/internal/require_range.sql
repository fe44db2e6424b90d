-- require_range: refuse a number outside its limits; NULL passes and means the default.
CREATE OR REPLACE FUNCTION mq_internal.require_range(
    p_argument text, p_value bigint, p_low bigint, p_high bigint
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_value NOT BETWEEN p_low AND p_high THEN
        PERFORM mq_internal.raise_error('invalid_argument', format('%s: must be %s to %s', p_argument,
            trim(to_char(p_low, '9,999,999,999,999,999')), trim(to_char(p_high, '9,999,999,999,999,999'))));
    END IF;
END
$$;
