-- unbind_topic: remove the bindings of a pattern, of a queue, or one.
-- Arguments:   p_pattern (as it was bound; NULL: all of the queue), p_type (NULL: all of the pattern); 1 to 200 characters, and
--              not both NULL
-- Returns:     affected: bindings removed
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; messages that were sent stay
-- Example:     SELECT mq.unbind_topic('orders.*.paid', 'invoice');
CREATE OR REPLACE FUNCTION mq.unbind_topic(
    p_pattern text DEFAULT NULL,
    p_type text DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    IF p_pattern IS NULL AND p_type IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'pattern: give a pattern, a type, or both');
    END IF;
    PERFORM mq_internal.require_name('pattern', p_pattern, true);
    PERFORM mq_internal.require_name('type', p_type, true);
    DELETE FROM mq.binding AS b WHERE (p_pattern IS NULL OR b.pattern = p_pattern) AND (p_type IS NULL OR b.type = p_type);
    GET DIAGNOSTICS affected = ROW_COUNT;
END
$$;
