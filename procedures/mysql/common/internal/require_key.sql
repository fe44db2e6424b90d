-- require_key: refuse a text that is not a batch key.
-- Arguments:   p_batch_key
-- Returns:     nothing
-- Errors:      50002 invalid_argument
-- Transaction: reads nothing
-- Example:     CALL mq_require_key('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

DROP PROCEDURE IF EXISTS mq_require_key;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_require_key(
    IN p_batch_key longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    IF p_batch_key IS NULL THEN
        CALL mq_raise_error('invalid_argument', 'batch_key: must not be NULL');
    ELSEIF p_batch_key NOT REGEXP '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' THEN
        CALL mq_raise_error('invalid_argument', 'batch_key: must be a batch key that a claim returned');
    END IF;
END//

DELIMITER ;
