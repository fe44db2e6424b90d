-- set_option: change one setting of a queue.
-- Arguments:   p_type (1 to 200 characters), p_option (the name of a setting, see set_queue), p_value (NULL: the default)
-- Returns:     the settings of the queue after the call, paused, and known (0: nothing had this name before)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50004 queue_not_empty, 50009 area_missing: as set_queue
-- Transaction: as set_queue
-- Example:     CALL mq_set_option('invoice', 'max_attempts', '5');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_set_option(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_option longtext CHARACTER SET utf8mb4,
    IN p_value longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_require_name('option', p_option, 0);
    CALL mq_set_queue(p_type, CONCAT('{', JSON_QUOTE(p_option), ':',
        IF(p_value REGEXP '^-?[0-9]{1,18}$', p_value, COALESCE(JSON_QUOTE(p_value), 'null')), '}'));
END
