-- subscribe: from now on, each such change of the table's rows sends a message of this type.
-- Arguments:   p_table (a watched table), p_action (I, U or D, or several of them), p_type (1 to 200 characters)
-- Returns:     count (subscriptions that are new)
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; changes that are written after its commit are sent
-- Example:     SELECT mq.subscribe('stock', 'IU', 'stock.changed');

CREATE OR REPLACE FUNCTION mq.subscribe(
    p_table text,
    p_action text,
    p_type text,
    OUT count bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
BEGIN
    PERFORM mq.require_actions(p_action, false);
    PERFORM mq.require_name('type', p_type, false);
    INSERT INTO mq.subscription (label, action, type)
    SELECT w.label, a.action, p_type
    FROM mq.find_watched(p_table) AS w, regexp_split_to_table(p_action, '') AS a (action)
    ORDER BY a.action
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS count = ROW_COUNT;
END
$$;
