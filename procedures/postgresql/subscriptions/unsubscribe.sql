-- unsubscribe: delete subscriptions of a table.
-- Arguments:   p_table (a watched table), p_action (I, U or D, or several of them; NULL: all), p_type or p_topic (both NULL:
--              all); the last three are not all NULL
-- Returns:     affected: subscriptions deleted
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; messages that were sent stay
-- Example:     SELECT mq.unsubscribe('stock', NULL, 'stock.changed');
CREATE OR REPLACE FUNCTION mq.unsubscribe(
    p_table text,
    p_action text DEFAULT NULL,
    p_type text DEFAULT NULL,
    p_topic text DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_watched record;
BEGIN
    IF coalesce(p_action, p_type, p_topic) IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'action: give an action, a type or a topic; IUD selects all');
    END IF;
    PERFORM mq_internal.require_actions(p_action, true);
    IF p_type IS NOT NULL AND p_topic IS NOT NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'type: give either a type or a topic');
    END IF;
    PERFORM mq_internal.require_name('type', p_type, true);
    PERFORM mq_internal.require_name('topic', p_topic, true);
    SELECT * INTO v_watched FROM mq_internal.find_watched(p_table);
    IF v_watched.relation IS NOT NULL THEN
        PERFORM mq_internal.require_rights(v_watched.relation, 'show', '');
    END IF;
    affected := mq_internal.drop_subscriptions(v_watched.label, p_action, p_type, p_topic, (
        SELECT m.pass FROM mq.my_pass AS m WHERE m.id = v_watched.relation AND m.need = 'show'
    ));
END
$$;
