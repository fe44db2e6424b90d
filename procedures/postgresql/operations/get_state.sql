-- get_state: the state of a message.
-- Arguments:   p_id (the message)
-- Returns:     state: N (new), A (active), E (dead), C (archived); NULL: completed and not archived, deleted, or never sent
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT mq.get_state(17);
CREATE OR REPLACE FUNCTION mq.get_state(p_id bigint, OUT state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    IF p_id IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    state := mq_internal.state_of(p_id);
END
$$;
