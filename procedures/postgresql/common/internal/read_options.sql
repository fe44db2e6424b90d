-- read_options: check a flat JSON object of options.
-- Arguments: p_argument (the error's text begins with it), p_known (by name: [low, high] of a whole number, where [0, 1]
--     takes true and false too; "text"; "time"), p_defaults (for null)
-- Returns: the options that are given: numbers as numbers, times as texts
CREATE OR REPLACE FUNCTION mq_internal.read_options(
    p_options text, p_argument text, p_known jsonb, p_defaults jsonb DEFAULT NULL
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_option record;
    v_number numeric;
    v_read jsonb := '{}';
BEGIN
    FOR v_option IN
        SELECT o.*, p_known -> o.name AS known FROM mq_internal.read_object(p_options, p_argument) AS o
    LOOP
        IF v_option.known IS NULL THEN
            PERFORM mq_internal.raise_error('invalid_argument', format('%s: %s is not known; known are %s', p_argument,
                left(v_option.name, 100), (SELECT string_agg(k, ', ' ORDER BY k) FROM jsonb_object_keys(p_known) AS k)));
        ELSIF v_option.kind = 'null' THEN
            v_read := v_read || jsonb_build_object(v_option.name, p_defaults -> v_option.name);
        ELSIF jsonb_typeof(v_option.known) = 'array' THEN
            v_number := CASE
                WHEN v_option.kind = 'number' AND v_option.value ~ '^-?[0-9]{1,19}$' THEN v_option.value::numeric
                WHEN v_option.kind = 'boolean' AND v_option.known = '[0, 1]' THEN (v_option.value = 'true')::integer
            END;
            IF v_number IS NULL OR v_number NOT BETWEEN (v_option.known -> 0)::numeric AND (v_option.known -> 1)::numeric THEN
                PERFORM mq_internal.raise_error('invalid_argument', format('%s: must be %s to %s', v_option.name,
                    trim(to_char((v_option.known -> 0)::numeric, '9,999,999,999,999,999,999')),
                    trim(to_char((v_option.known -> 1)::numeric, '9,999,999,999,999,999,999'))));
            END IF;
            v_read := v_read || jsonb_build_object(v_option.name, v_number);
        ELSE
            IF v_option.kind <> 'string' THEN
                PERFORM mq_internal.raise_error('invalid_argument', v_option.name || ': must be a text');
            END IF;
            v_read := v_read || jsonb_build_object(v_option.name, v_option.value);
            IF v_option.known = '"time"' AND mq_internal.read_time(v_option.value) IS NULL THEN
                PERFORM mq_internal.raise_error('invalid_argument',
                    v_option.name || ': must be a time with its zone, such as 2026-11-27T08:30:00Z');
            END IF;
        END IF;
    END LOOP;
    RETURN v_read;
END
$$;
