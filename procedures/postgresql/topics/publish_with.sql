-- publish_with: send one message with options to each type that is bound to the topic.
-- Arguments:   p_topic (words separated by dots, 1 to 200 characters), p_body (up to 16 MiB), p_options (as for send_with;
--              headers are a JSON object, up to 64 KiB with the topic in it)
-- Returns:     affected: messages sent; a type with a live message of this dedup_key is not counted
-- Errors:      50001 wrong_isolation (replace or postpone in an ordered queue or one with limits per group),
--              50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed the same dedup_key
-- Example:     SELECT mq.publish_with('orders.eu.paid', '{"order":17}', '{"delay_seconds": 60}');
CREATE OR REPLACE FUNCTION mq.publish_with(
    p_topic text,
    p_body text,
    p_options text DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_set record;
    v_object text;
    v_headers text;
    v_type text;
BEGIN
    PERFORM mq_internal.require_topic('topic', p_topic, false);
    SELECT * INTO v_set FROM jsonb_to_record(mq_internal.send_options(p_options)) AS o (
        run_at timestamptz, priority bigint, group_key text, dedup_key text, max_attempts bigint, headers text, source text,
        delay_seconds bigint, on_conflict text
    );
    v_object := coalesce(v_set.headers, '{}');
    IF v_object NOT LIKE '{%}' THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'headers: must be a JSON object with unique names');
    END IF;
    -- A topic needs no escapes in JSON: require_topic has checked it.
    v_headers := concat('{"topic":"', p_topic, '"', CASE WHEN v_object ~ '^[{][[:space:]]*}$' THEN '}' ELSE ',' || substr(v_object, 2) END);
    -- Checked even if no type is bound.
    PERFORM mq_internal.require_message(p_body, v_set.run_at, v_set.priority, v_set.group_key, v_set.dedup_key, v_set.max_attempts, v_headers, v_set.source,
        v_set.delay_seconds, v_set.on_conflict);
    affected := 0;
    -- In the order of their names: two publishers with the same dedup_key lock in the same order and do not deadlock.
    FOR v_type IN SELECT * FROM mq_internal.topic_types(p_topic) LOOP
        affected := affected + (mq.send_message(v_type, p_body, v_set.run_at, v_set.priority, v_set.group_key, v_set.dedup_key, v_set.max_attempts,
            v_headers, v_set.source, v_set.delay_seconds, v_set.on_conflict)).created;
    END LOOP;
END
$$;
