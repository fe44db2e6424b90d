-- open_release: list the rows of a polling table that are at active_value, before it is released.
-- Returns:     p_table (as imq_polled_settings returns it), NULL when there is no such polling table; p_items: a JSON array
--              of [id, ident], NULL when there are none

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_open_release(
    IN p_name longtext CHARACTER SET utf8mb4, OUT p_table longtext CHARACTER SET utf8mb4,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_count int;
    SET p_table = NULL, p_items = NULL;
    SELECT COUNT(*) INTO v_count FROM mq_polled WHERE name = p_name;
    IF v_count > 0 THEN
        CALL imq_use_polled(p_name, 'change');
        CALL imq_lock_polled(p_name);
        CALL imq_polled_settings(p_name, p_table);
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(id, ident) ORDER BY id), ']') INTO p_items
        FROM mq_polled_row WHERE name = p_name AND active = 1 AND state <> 'E';
    END IF;
END
