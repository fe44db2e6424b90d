-- send_options: the options of a message that is sent, checked as far as JSON goes; see require_message.
-- Arguments: p_batch (true: those of send_batch, which has no dedup_key)
CREATE OR REPLACE FUNCTION mq_internal.send_options(
    p_options text, p_batch boolean DEFAULT false, OUT run_at timestamptz, OUT priority bigint, OUT group_key text,
    OUT dedup_key text, OUT max_attempts bigint, OUT headers text, OUT source text, OUT delay_seconds bigint,
    OUT on_conflict text
)
LANGUAGE plpgsql AS $$
DECLARE
    c_member CONSTANT text := $r$\s*("(group_key|dedup_key|source|on_conflict)"\s*:\s*"[^"\\[:cntrl:]]*"$r$
        || $r$|"(priority|max_attempts|delay_seconds)"\s*:\s*-?(0|[1-9][0-9]{0,8}))\s*$r$;
    c_single CONSTANT text[] := '{dedup_key,on_conflict}';
    v_set jsonb;
BEGIN
    IF p_options IS NULL THEN
        RETURN;
    END IF;
    -- An object without escapes, times and null needs no other check than for names that are given twice. That makes
    -- send_with a third faster.
    IF p_options ~ ($r$^\s*\{$r$ || c_member || '(,' || c_member || $r$)*\}\s*$r$ || '$') THEN
        v_set := p_options;
    END IF;
    IF v_set IS NULL OR p_batch AND v_set ?| c_single
            OR regexp_count(p_options, '[a-z]"[[:space:]]*:') <> (SELECT count(*) FROM jsonb_object_keys(v_set)) THEN
        v_set := mq_internal.read_options(p_options, 'options', '{"run_at": "time", "priority": [-32768, 32767],
            "group_key": "text", "dedup_key": "text", "max_attempts": [1, 1000], "headers": "text", "source": "text",
            "delay_seconds": [0, 315360000], "on_conflict": "text"}'::jsonb
            - CASE WHEN p_batch THEN c_single ELSE '{}' END);
    END IF;
    run_at := v_set ->> 'run_at';
    priority := v_set ->> 'priority';
    group_key := v_set ->> 'group_key';
    dedup_key := v_set ->> 'dedup_key';
    max_attempts := v_set ->> 'max_attempts';
    headers := v_set ->> 'headers';
    source := v_set ->> 'source';
    delay_seconds := v_set ->> 'delay_seconds';
    on_conflict := v_set ->> 'on_conflict';
END
$$;
