-- get_state: the state of a message.
-- Arguments:   p_id (the message)
-- Returns:     state: N (new), A (active), E (dead), C (archived); NULL: completed and not archived, deleted, or never sent
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_get_state(17);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_get_state(IN p_id bigint)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_state char(1) CHARACTER SET ascii;
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    CALL imq_state_of(p_id, v_state);
    SELECT v_state AS state;
END
