-- set_progress: keep how far a handler is, as the step `progress` of its message: {"done":3,"total":10,"note":"page 3"}.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_done (0 to 9,007,199,254,740,991), p_total (the
--              same; NULL: not known), p_note (up to 500 characters; NULL: none)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument, 50008 lease_lost, 50011 cancelled (nothing is saved)
-- Transaction: as for save_step
-- Example:     SELECT mq.set_progress(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 3, 10, 'page 3');
CREATE OR REPLACE FUNCTION mq.set_progress(
    p_id bigint,
    p_batch_key uuid,
    p_done bigint,
    p_total bigint DEFAULT NULL,
    p_note text DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    -- The largest number that every reader of JSON takes unchanged.
    c_most CONSTANT bigint := 9007199254740991;
BEGIN
    IF p_done IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'done: must not be NULL');
    END IF;
    PERFORM mq_internal.require_range('done', p_done, 0, c_most);
    PERFORM mq_internal.require_range('total', p_total, 0, c_most);
    IF char_length(p_note) > 500 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'note: must be a text of up to 500 characters');
    END IF;
    affected := mq.save_step(p_id, p_batch_key, 'progress', json_strip_nulls(json_build_object('done', p_done, 'total', p_total, 'note', p_note))::text);
END
$$;
