-- get_result: a message's state, its result, and the error of its last failed attempt.
-- Arguments:   p_id (the message)
-- Returns:     state (N new, A active, E dead, C archived), result (NULL: none was stored), error (while the message is
--              delayed or dead, else NULL); no row when there is no such message, live or archived
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_get_result(17);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_get_result(IN p_id bigint)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_state char(1) CHARACTER SET ascii;
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    CALL imq_state_of(p_id, v_state);
    SELECT v_state AS state, COALESCE(k.result, c.result) AS result, COALESCE(e.error, d.error) AS error
    FROM (SELECT p_id AS id) AS i
    LEFT JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = i.id
    LEFT JOIN mq_result AS k FORCE INDEX (PRIMARY) ON k.id = i.id
    LEFT JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = i.id
    LEFT JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
    LEFT JOIN mq_archive AS c FORCE INDEX (PRIMARY) ON c.id = i.id
    WHERE v_state IS NOT NULL;
END
