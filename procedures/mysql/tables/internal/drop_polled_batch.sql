-- drop_polled_batch: end a claim. The transaction that deletes its batch owns the entries, which stay for the caller.
-- Arguments:   p_batch_key
-- Returns:     p_table (as mq_polled_settings returns it), NULL when the lease was lost; p_items: a JSON array of [id,
--              ident, active, attempts]
-- Errors:      none
-- Transaction: joins the caller's; calls for the same batch wait for each other
-- Example:     CALL mq_drop_polled_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', v_table, v_items);

DROP PROCEDURE IF EXISTS mq_drop_polled_batch;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_drop_polled_batch(
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    OUT p_table longtext CHARACTER SET utf8mb4,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    SELECT MAX(b.name) INTO v_name
    FROM (SELECT name FROM mq_polled_batch WHERE batch_key = p_batch_key FOR UPDATE) AS b;
    SET p_table = NULL, p_items = NULL;
    IF v_name IS NOT NULL THEN
        DELETE FROM mq_polled_batch WHERE batch_key = p_batch_key;
        CALL mq_polled_settings(v_name, p_table);
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(id, ident, active, attempts) ORDER BY id), ']') INTO p_items
        FROM mq_polled_row WHERE batch_key = p_batch_key;
    END IF;
END//

DELIMITER ;
