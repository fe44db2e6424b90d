-- require_key: refuse a text that is not a batch key.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_key(IN p_batch_key longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    IF p_batch_key IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'batch_key: must not be NULL');
    ELSEIF p_batch_key NOT REGEXP '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' THEN
        CALL imq_raise_error('invalid_argument', 'batch_key: must be a batch key that a claim returned');
    END IF;
END
