-- subscribe: from now on, send a message to a type or topic for each changed row of a table.
-- Arguments:   p_table (a watched table), p_action (I, U or D, or several of them), and either p_type (1 to 200 characters)
--              or p_topic (each type bound to it at the time of the change gets one message)
-- Returns:     affected: new subscriptions
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; changes written after its commit are sent
-- Example:     SELECT mq.subscribe('stock', 'IU', 'stock.changed');
CREATE OR REPLACE FUNCTION mq.subscribe(
    p_table text,
    p_action text,
    p_type text DEFAULT NULL,
    p_topic text DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_watched record;
BEGIN
    PERFORM mq_internal.require_actions(p_action, false);
    IF (p_type IS NULL) = (p_topic IS NULL) THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'type: give either a type or a topic');
    END IF;
    PERFORM mq_internal.require_name('type', p_type, true);
    IF p_topic IS NOT NULL THEN
        PERFORM mq_internal.require_topic('topic', p_topic, false);
    END IF;
    SELECT * INTO v_watched FROM mq_internal.find_watched(p_table);
    IF v_watched.quoted IS NULL THEN
        PERFORM mq_internal.raise_error('not_found', format('table: there is no table %s any more', v_watched.label));
    END IF;
    -- The messages contain keys of the rows that change.
    PERFORM mq_internal.require_rights(v_watched.relation, 'show', '');
    affected := mq_internal.add_subscriptions(v_watched.label, p_action, coalesce(p_type, ''), coalesce(p_topic, ''), (
        SELECT m.pass FROM mq.my_pass AS m WHERE m.id = v_watched.relation AND m.need = 'show'
    ));
END
$$;
