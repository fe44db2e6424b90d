-- send_message: send one message with all options.
-- Arguments:   p_type, p_body, p_run_at (NULL: now), p_priority (-32,768 to 32,767, smaller first; NULL: 0), p_group_key,
--              p_dedup_key, p_max_attempts (1 to 1,000; NULL: the queue's), p_headers (up to 64 KiB), p_source (NULL: the
--              application name), p_delay_seconds (instead of p_run_at), p_on_conflict (what becomes of a live message of
--              this dedup_key: keep, replace or postpone; NULL: keep); names and keys have 1 to 200 characters
-- Returns:     id, created (0: a live message has this type and dedup_key, and id is that one's), changed (1: that one
--              was replaced or postponed)
-- Errors:      50001 wrong_isolation (a change in an ordered queue), 50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed the same dedup_key
-- Example:     SELECT * FROM mq.send_message('email', '{}', p_dedup_key => 'a-1', p_delay_seconds => 60);

CREATE OR REPLACE FUNCTION mq.send_message(
    p_type text,
    p_body text,
    p_run_at timestamptz DEFAULT NULL,
    p_priority integer DEFAULT NULL,
    p_group_key text DEFAULT NULL,
    p_dedup_key text DEFAULT NULL,
    p_max_attempts integer DEFAULT NULL,
    p_headers text DEFAULT NULL,
    p_source text DEFAULT NULL,
    p_delay_seconds integer DEFAULT NULL,
    p_on_conflict text DEFAULT NULL,
    OUT id bigint,
    OUT created smallint,
    OUT changed smallint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
DECLARE
    v_sent record;
BEGIN
    PERFORM mq.require_name('type', p_type, false);
    PERFORM mq.require_message(p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers, p_source,
        p_delay_seconds, p_on_conflict);
    v_sent := mq.send_one(p_type, p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers, p_source,
        p_delay_seconds, p_on_conflict);
    id := v_sent.id;
    created := v_sent.created;
    changed := v_sent.changed;
END
$$;
