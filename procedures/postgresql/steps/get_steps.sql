-- get_steps: the steps that handlers of a message have saved, in this attempt and before it.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it)
-- Returns:     step, step_value, saved_at; in the order in which they were saved first
-- Errors:      50002 invalid_argument, 50008 lease_lost, 50011 cancelled
-- Transaction: joins the caller's; a call that finishes the message waits for it
-- Example:     SELECT * FROM mq.get_steps(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');
CREATE OR REPLACE FUNCTION mq.get_steps(p_id bigint, p_batch_key uuid) RETURNS TABLE (
    step text, step_value text, saved_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
#variable_conflict use_column
BEGIN
    PERFORM mq_internal.hold_message(p_id, p_batch_key);
    RETURN QUERY SELECT s.step, s.step_value, s.saved_at FROM mq.step AS s WHERE s.id = p_id ORDER BY s.n;
END
$$;
