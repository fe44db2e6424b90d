-- bind_topic: send each message that is published to a matching topic to this queue.
-- Arguments:   p_pattern (words separated by dots; * matches exactly one word, # zero or more), p_type; both have 1 to
--              200 characters
-- Returns:     created: 1; 0 when the binding already exists
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; applies to messages published after its commit
-- Example:     SELECT mq.bind_topic('orders.*.paid', 'invoice');
CREATE OR REPLACE FUNCTION mq.bind_topic(
    p_pattern text,
    p_type text,
    OUT created smallint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    PERFORM mq_internal.require_topic('pattern', p_pattern, true);
    PERFORM mq_internal.require_name('type', p_type, false);
    INSERT INTO mq.binding (pattern, type, like_pattern)
    SELECT p_pattern, p_type, string_agg(CASE w.word
            WHEN '#' THEN '%'
            WHEN '*' THEN '.%.'
            ELSE concat('.', replace(replace(w.word, '%', $r$\%$r$), '_', $r$\_$r$), '.')
        END, '' ORDER BY w.n)
    FROM string_to_table(p_pattern, '.') WITH ORDINALITY AS w (word, n)
    ON CONFLICT DO NOTHING;
    created := FOUND::integer;
END
$$;
