-- send_options: the options of a message that is sent, checked as far as JSON goes; see require_message.
-- Arguments: p_batch (true: those of send_batch, which has no dedup_key)
CREATE OR REPLACE FUNCTION mq_internal.send_options(p_options text, p_batch boolean DEFAULT false) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    v_set jsonb;
    v_text text := replace(replace(p_options, '\\', ''), '\"', '');
BEGIN
    IF p_options IS NULL THEN
        RETURN NULL;
    END IF;
    -- read_options takes a third of the time of send_message. It has nothing to add to known names that are given once,
    -- with texts and whole numbers: then the quotes that no backslash precedes are two for each name and each text.
    BEGIN
        v_set := p_options;
        IF v_set - '{run_at,priority,group_key,dedup_key,max_attempts,headers,source,delay_seconds,on_conflict}'::text[] = '{}'
                AND (jsonb_typeof(v_set -> 'group_key') = 'string') IS NOT FALSE
                AND (jsonb_typeof(v_set -> 'dedup_key') = 'string') IS NOT FALSE
                AND (jsonb_typeof(v_set -> 'headers') = 'string') IS NOT FALSE
                AND (jsonb_typeof(v_set -> 'source') = 'string') IS NOT FALSE
                AND (jsonb_typeof(v_set -> 'on_conflict') = 'string') IS NOT FALSE
                AND (jsonb_typeof(v_set -> 'run_at') = 'string') IS NOT FALSE
                AND (jsonb_typeof(v_set -> 'priority') = 'number') IS NOT FALSE
                AND (jsonb_typeof(v_set -> 'max_attempts') = 'number') IS NOT FALSE
                AND (jsonb_typeof(v_set -> 'delay_seconds') = 'number') IS NOT FALSE
                AND v_text !~ '"\s*:\s*-?([0-9]{10}|[0-9]+[.eE])'
                AND octet_length(v_text) - octet_length(replace(v_text, '"', '')) = 4 * num_nonnulls(v_set -> 'group_key',
                    v_set -> 'dedup_key', v_set -> 'headers', v_set -> 'source', v_set -> 'on_conflict', v_set -> 'run_at')
                    + 2 * num_nonnulls(v_set -> 'priority', v_set -> 'max_attempts', v_set -> 'delay_seconds')
                AND (NOT v_set ? 'run_at' OR mq_internal.read_time(v_set ->> 'run_at') IS NOT NULL)
                AND NOT (p_batch AND v_set ?| '{dedup_key,on_conflict}') THEN
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
