-- drop_subscriptions: delete subscriptions of a watched table, for a caller with the right to read it.
-- Arguments: p_actions, p_type, p_topic (each NULL: all), p_pass (see my_pass; not needed if the table is gone)
CREATE OR REPLACE FUNCTION mq_internal.drop_subscriptions(
    p_label text, p_actions text, p_type text, p_topic text, p_pass text
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_table oid := mq_internal.labelled_table(p_label);
    v_count bigint;
BEGIN
    IF v_table IS NOT NULL THEN
        PERFORM mq_internal.require_pass(p_pass, v_table, 'show', '');
    END IF;
    DELETE FROM mq.subscription AS s
    WHERE s.label = p_label AND (p_actions IS NULL OR strpos(p_actions, s.action) > 0)
        AND (p_type IS NULL OR s.type = p_type) AND (p_topic IS NULL OR s.topic = p_topic);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$$;
