-- require_name: refuse a type, key or name that is not 1 to 200 characters long.
CREATE OR REPLACE FUNCTION mq_internal.require_name(p_argument text, p_value text, p_optional boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_value IS NULL AND p_optional OR char_length(p_value) BETWEEN 1 AND 200 THEN
        RETURN;
    END IF;
    PERFORM mq_internal.raise_error('invalid_argument', p_argument || ': must be 1 to 200 characters');
END
$$;
