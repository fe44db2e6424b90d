-- drop_polled_batch: end a claim. The transaction that deletes its batch owns the entries, which stay for the caller.
-- Returns:     p_table (as imq_polled_settings returns it), NULL when the lease was lost; p_items: a JSON array of [id,
--              ident, active, attempts]
-- Transaction: joins the caller's; calls for the same batch wait for each other

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_drop_polled_batch(
    IN p_batch_key longtext CHARACTER SET utf8mb4, OUT p_table longtext CHARACTER SET utf8mb4,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    SELECT MAX(b.name) INTO v_name
    FROM (SELECT name FROM mq_polled_batch WHERE batch_key = p_batch_key FOR UPDATE) AS b;
    SET p_table = NULL, p_items = NULL;
    IF v_name IS NOT NULL THEN
        DELETE FROM mq_polled_batch WHERE batch_key = p_batch_key;
        CALL imq_polled_settings(v_name, p_table);
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(id, ident, active, attempts) ORDER BY id), ']') INTO p_items
        FROM mq_polled_row WHERE batch_key = p_batch_key;
    END IF;
END
