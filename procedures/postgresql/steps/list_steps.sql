-- list_steps: the steps that handlers of a live message have saved, the last one first; for operators, who hold no lease.
-- Arguments:   p_id (the message), p_size (at most so many steps, 1 to 10,000; NULL: 100)
-- Returns:     step, step_value (its first 1,000 characters), saved_at; no row for a message without steps
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq.list_steps(17);
CREATE OR REPLACE FUNCTION mq.list_steps(p_id bigint, p_size bigint DEFAULT NULL) RETURNS TABLE (
    step text, step_value text, saved_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF p_id IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    RETURN QUERY
        SELECT s.step, left(s.step_value, 1000), s.saved_at FROM mq.step AS s
        WHERE s.id = p_id ORDER BY s.n DESC LIMIT coalesce(p_size, 100);
END
$$;
