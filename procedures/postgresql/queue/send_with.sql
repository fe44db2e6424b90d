-- send_with: send one message with options, which are a JSON object.
-- Arguments:   p_type, p_body (up to 16 MiB), p_options (a flat JSON object): run_at (a time with its zone, from 1970 to ten
--              years ahead; default now), delay_seconds (0 to 315,360,000, instead of run_at), priority (-32,768 to 32,767,
--              smaller first; 0), group_key, dedup_key, on_conflict (keep, replace or postpone a live message that has the
--              same dedup_key; keep), max_attempts (1 to 1,000; the queue's), headers (a text of up to 64 KiB), source (the
--              application name); names and keys have 1 to 200 characters
-- Returns:     as send_message
-- Errors:      50001 wrong_isolation (replace or postpone in an ordered queue or one with limits per group),
--              50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed a message with the same dedup_key
-- Example:     SELECT * FROM mq.send_with('email', '{}', '{"dedup_key": "a-1", "delay_seconds": 60}');
CREATE OR REPLACE FUNCTION mq.send_with(
    p_type text,
    p_body text,
    p_options text DEFAULT NULL,
    OUT id bigint, OUT created smallint, OUT changed smallint, OUT state text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_set jsonb := mq_internal.send_options(p_options);
    -- Not SELECT INTO, which takes twice as long.
    v_sent record := mq.send_message(p_type, p_body, (v_set ->> 'run_at')::timestamptz, (v_set ->> 'priority')::bigint,
        v_set ->> 'group_key', v_set ->> 'dedup_key', (v_set ->> 'max_attempts')::bigint, v_set ->> 'headers',
        v_set ->> 'source', (v_set ->> 'delay_seconds')::bigint, v_set ->> 'on_conflict');
BEGIN
    id := v_sent.id;
    created := v_sent.created;
    changed := v_sent.changed;
    state := v_sent.state;
END
$$;
