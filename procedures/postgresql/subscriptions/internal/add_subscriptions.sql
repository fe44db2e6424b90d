-- add_subscriptions: store subscriptions of a watched table, for a caller with the right to read it.
-- Arguments: p_type and p_topic (one of them is empty)
CREATE OR REPLACE FUNCTION mq_internal.add_subscriptions(
    p_label text, p_actions text, p_type text, p_topic text, p_pass text
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_count bigint;
BEGIN
    PERFORM mq_internal.require_pass(p_pass, mq_internal.labelled_table(p_label), 'show', '');
    INSERT INTO mq.subscription (label, action, type, topic)
    SELECT p_label, a.action, p_type, p_topic
    FROM regexp_split_to_table(p_actions, '') AS a (action)
    ORDER BY a.action
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$$;
