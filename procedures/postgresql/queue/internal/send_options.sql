-- send_options: the options of a message that is sent, checked as far as JSON goes; see require_message.
-- Arguments: p_batch (true: those of send_batch, which has no dedup_key)
CREATE OR REPLACE FUNCTION mq_internal.send_options(p_options text, p_batch boolean DEFAULT false) RETURNS jsonb
LANGUAGE plpgsql STRICT AS $$
DECLARE
    v_set jsonb;
    v_text text := replace(replace(replace(p_options, '\\', '.'), '\"', '.'), '": ', '":');
    v_numbers text := replace(v_text, '}', ',');
BEGIN
    -- read_options takes a third of the time of send_message. It has nothing to add to known names that are given once,
    -- with texts and whole numbers: then the quotes that no backslash precedes are two for each name and each text. A
    -- member that is not found here has at least two that nothing counts. In jsonb, 1e3 is 1000; so numbers are searched.
    BEGIN
        v_set := p_options;
        IF jsonb_typeof(v_set) = 'object' AND octet_length(v_text) - octet_length(replace(v_text, '"', '')) = 4 * num_nonnulls(
                    nullif(strpos(v_text, '"group_key":"'), 0), nullif(strpos(v_text, '"headers":"'), 0),
                    nullif(strpos(v_text, '"source":"'), 0),
                    CASE WHEN NOT p_batch THEN nullif(strpos(v_text, '"dedup_key":"'), 0) END,
                    CASE WHEN NOT p_batch THEN nullif(strpos(v_text, '"on_conflict":"'), 0) END,
                    CASE WHEN v_set ? 'run_at' THEN mq_internal.read_time(v_set ->> 'run_at') END)
                + 2 * num_nonnulls(
                    nullif(strpos(v_numbers, '"priority":' || (v_set ->> 'priority')::integer || ','), 0),
                    nullif(strpos(v_numbers, '"max_attempts":' || (v_set ->> 'max_attempts')::integer || ','), 0),
                    nullif(strpos(v_numbers, '"delay_seconds":' || (v_set ->> 'delay_seconds')::integer || ','), 0)) THEN
            RETURN v_set;
        END IF;
    EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        -- read_options raises the error.
    END;
    RETURN mq_internal.read_options(p_options, 'options', '{"run_at": "time", "priority": [-32768, 32767],
        "group_key": "text", "dedup_key": "text", "max_attempts": [1, 1000], "headers": "text", "source": "text",
        "delay_seconds": [0, 315360000], "on_conflict": "text"}'::jsonb
        - CASE WHEN p_batch THEN '{dedup_key,on_conflict}' ELSE '{}' END::text[]);
END
$$;
