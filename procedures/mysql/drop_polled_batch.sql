-- drop_polled_batch: end a claim of rows: delete its batch and say what table it was of.
-- Arguments:   p_batch_key
-- Returns:     p_name: the adopted table, NULL when the batch was lost; p_ids: a JSON array of the claims that it held
-- Errors:      none
-- Transaction: joins the caller's; calls for the same batch wait for each other
-- Example:     CALL mq_drop_polled_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', v_name, v_ids);

DROP PROCEDURE IF EXISTS mq_drop_polled_batch;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_drop_polled_batch(
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    OUT p_name varchar(200) CHARACTER SET utf8mb4,
    OUT p_ids longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    SELECT MAX(b.name) INTO p_name
    FROM (SELECT name FROM mq_polled_batch WHERE batch_key = p_batch_key FOR UPDATE) AS b;
    IF p_name IS NOT NULL THEN
        DELETE FROM mq_polled_batch WHERE batch_key = p_batch_key;
        SELECT CONCAT('[', GROUP_CONCAT(id ORDER BY id), ']') INTO p_ids FROM mq_polled_row WHERE batch_key = p_batch_key;
    END IF;
END//

DELIMITER ;
