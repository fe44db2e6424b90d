-- unbind_topic: remove bindings; NULL selects all.
-- Arguments:   p_pattern (as it was bound; NULL: all), p_type (NULL: all); both have 1 to 200 characters
-- Returns:     count: bindings removed
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; messages that were sent stay
-- Example:     SELECT mq.unbind_topic('orders.*.paid', 'invoice');
CREATE OR REPLACE FUNCTION mq.unbind_topic(
    p_pattern text DEFAULT NULL,
    p_type text DEFAULT NULL,
    OUT count bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    PERFORM mq_internal.require_name('pattern', p_pattern, true);
    PERFORM mq_internal.require_name('type', p_type, true);
    DELETE FROM mq.binding AS b WHERE (p_pattern IS NULL OR b.pattern = p_pattern) AND (p_type IS NULL OR b.type = p_type);
    GET DIAGNOSTICS count = ROW_COUNT;
END
$$;
