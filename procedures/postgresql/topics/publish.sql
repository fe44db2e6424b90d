-- publish: send one message to each type that is bound to the topic.
-- Arguments:   p_topic (words separated by dots, 1 to 200 characters), p_headers (a JSON object, up to 64 KiB with the
--              topic in it; NULL: only the topic); as for send_message: p_body, p_run_at, p_priority, p_group_key,
--              p_dedup_key, p_max_attempts, p_source, p_delay_seconds, p_on_conflict
-- Returns:     count: messages sent; a type with a live message of this dedup_key is not counted
-- Errors:      50001 wrong_isolation (replace or postpone in an ordered queue or one with limits per group),
--              50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed the same dedup_key
-- Example:     SELECT mq.publish('orders.eu.paid', '{"order":17}');
CREATE OR REPLACE FUNCTION mq.publish(
    p_topic text, p_body text, p_run_at timestamptz DEFAULT NULL, p_priority bigint DEFAULT NULL,
    p_group_key text DEFAULT NULL, p_dedup_key text DEFAULT NULL, p_max_attempts bigint DEFAULT NULL,
    p_headers text DEFAULT NULL, p_source text DEFAULT NULL, p_delay_seconds bigint DEFAULT NULL,
    p_on_conflict text DEFAULT NULL, OUT count bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_object text := coalesce(p_headers, '{}');
    v_headers text;
    v_type text;
BEGIN
    PERFORM mq_internal.require_topic('topic', p_topic, false);
    IF v_object NOT LIKE '{%}' THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'headers: must be a JSON object with unique names');
    END IF;
    -- A topic needs no escapes in JSON: require_topic has checked it.
    v_headers := concat('{"topic":"', p_topic, '"', CASE WHEN v_object ~ '^[{]\s*}$' THEN '}' ELSE ',' || substr(v_object, 2) END);
    -- Checked even if no type is bound.
    PERFORM mq_internal.require_message(p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, v_headers, p_source,
        p_delay_seconds, p_on_conflict);
    count := 0;
    -- In the order of their names: two publishers with the same dedup_key lock in the same order and do not deadlock.
    FOR v_type IN SELECT * FROM mq_internal.topic_types(p_topic) LOOP
        count := count + (mq.send_message(v_type, p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts,
            v_headers, p_source, p_delay_seconds, p_on_conflict)).created;
    END LOOP;
END
$$;
