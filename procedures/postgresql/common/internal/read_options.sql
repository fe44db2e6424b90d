-- read_options: check a flat JSON object of options.
-- Arguments: p_argument (begins the text of an error), p_known (by name: [low, high] for a whole number, where [0, 1] takes
--     true and false too; "text"; "time" for a time with its zone)
-- Returns: the options that are given; numbers as numbers, times as texts
CREATE OR REPLACE FUNCTION mq_internal.read_options(p_options text, p_argument text, p_known jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_option record;
    v_read jsonb := '{}';
    v_wrong text;
BEGIN
    FOR v_option IN
        SELECT o.*, p_known -> o.name AS known FROM mq_internal.read_object(p_options, p_argument) AS o
    LOOP
        IF v_option.known IS NULL THEN
            PERFORM mq_internal.raise_error('invalid_argument', format('%s: %s is not known; known are %s', p_argument,
                left(v_option.name, 100), (SELECT string_agg(k, ', ' ORDER BY k) FROM jsonb_object_keys(p_known) AS k)));
        ELSIF v_option.kind = 'null' THEN
            v_read := v_read || jsonb_build_object(v_option.name, NULL);
        ELSIF v_option.known = '"text"' THEN
            v_wrong := CASE WHEN v_option.kind <> 'string' THEN 'must be a text' END;
            v_read := v_read || jsonb_build_object(v_option.name, v_option.value);
        ELSIF v_option.known = '"time"' THEN
            BEGIN
                v_read := v_read || jsonb_build_object(v_option.name, CASE
                    WHEN v_option.value ~ '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.]\d{1,6})?)?(Z|[+-]\d\d:\d\d)$'
                        THEN v_option.value
                END::timestamptz);
            EXCEPTION WHEN data_exception THEN
                v_wrong := 'x';
            END;
            IF v_wrong IS NOT NULL OR v_option.kind <> 'string' OR v_read ->> v_option.name IS NULL THEN
                v_wrong := 'must be a time with its zone, as 2026-11-27T08:30:00Z';
            END IF;
        ELSE
            v_option.value := CASE
                WHEN v_option.kind = 'number' THEN v_option.value
                WHEN v_option.kind = 'boolean' AND v_option.known = '[0, 1]' THEN (v_option.value = 'true')::integer::text
            END;
            IF v_option.value !~ '^-?[0-9]{1,19}$' IS NOT FALSE OR v_option.value::numeric NOT BETWEEN -2^63 AND 2^63 - 1 THEN
                v_wrong := 'must be a whole number';
            ELSE
                PERFORM mq_internal.require_range(v_option.name, v_option.value::bigint, (v_option.known -> 0)::bigint,
                    (v_option.known -> 1)::bigint);
                v_read := v_read || jsonb_build_object(v_option.name, v_option.value::bigint);
            END IF;
        END IF;
        IF v_wrong IS NOT NULL THEN
            PERFORM mq_internal.raise_error('invalid_argument', v_option.name || ': ' || v_wrong);
        END IF;
    END LOOP;
    RETURN v_read;
END
$$;
