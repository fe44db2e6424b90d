-- require_message: check the arguments of one message except its type; NULL means the default where there is one.
--
-- The other checks are called only to raise their error: a call costs each sender more than all comparisons here.
CREATE OR REPLACE FUNCTION mq_internal.require_message(
    p_body text, p_run_at timestamptz, p_priority bigint, p_group_key text, p_dedup_key text, p_max_attempts bigint,
    p_headers text, p_source text, p_delay_seconds bigint, p_on_conflict text
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_body IS NULL OR octet_length(p_body) > 16777216 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    -- Some client libraries cannot represent earlier years.
    IF p_run_at > clock_timestamp() + interval '315360000 seconds' OR p_run_at < timestamptz '1970-01-01 00:00:00+00' THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'run_at: must be from 1970 to at most 315,360,000 seconds (ten years) ahead');
    END IF;
    IF p_priority NOT BETWEEN -32768 AND 32767 OR p_max_attempts NOT BETWEEN 1 AND 1000
            OR char_length(p_group_key) NOT BETWEEN 1 AND 200 OR char_length(p_dedup_key) NOT BETWEEN 1 AND 200
            OR char_length(p_source) NOT BETWEEN 1 AND 200 THEN
        PERFORM mq_internal.require_range('priority', p_priority, -32768, 32767);
        PERFORM mq_internal.require_name('group_key', p_group_key, true);
        PERFORM mq_internal.require_name('dedup_key', p_dedup_key, true);
        PERFORM mq_internal.require_range('max_attempts', p_max_attempts, 1, 1000);
        PERFORM mq_internal.require_name('source', p_source, true);
    END IF;
    IF octet_length(p_headers) > 65536 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'headers: must be a text of up to 64 KiB (65,536 bytes)');
    END IF;
    IF p_headers IS NOT NULL THEN
        PERFORM mq_internal.require_headers(p_headers);
    END IF;
    IF p_delay_seconds IS NOT NULL THEN
        PERFORM mq_internal.require_range('delay_seconds', p_delay_seconds, 0, 315360000);
        IF p_run_at IS NOT NULL THEN
            PERFORM mq_internal.raise_error('invalid_argument', 'delay_seconds: must be NULL when run_at is given');
        END IF;
    END IF;
    IF p_on_conflict NOT IN ('keep', 'replace', 'postpone') THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'on_conflict: must be keep, replace or postpone');
    ELSIF p_on_conflict <> 'keep' AND p_dedup_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'on_conflict: replace and postpone need a dedup_key');
    END IF;
END
$$;
