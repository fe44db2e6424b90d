-- list_steps: the steps that handlers of a live message have saved, the last one first; for operators, who hold no lease.
-- Arguments:   p_id (the message), p_size (at most so many steps, 1 to 10,000; NULL: 100)
-- Returns:     step, step_value (its first 1,000 characters), saved_at; no row for a message without steps
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_list_steps(17, NULL);
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_steps(
    IN p_id bigint,
    IN p_size bigint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_size int DEFAULT COALESCE(p_size, 100);
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    CALL imq_require_range('size', p_size, 1, 10000);
    SELECT s.step, LEFT(s.step_value, 1000) AS step_value, s.saved_at FROM mq_step AS s
    WHERE s.id = p_id ORDER BY s.n DESC, s.saved_at DESC LIMIT v_size;
END
