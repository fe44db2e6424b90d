-- open_retry: list the dead rows of a polling table that will be retried.
-- Arguments:   p_name, p_id (of one entry; NULL: all), p_size
-- Returns:     p_table (as imq_polled_settings returns it); p_items: a JSON array of [id, ident], NULL when there are none

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_open_retry(
    IN p_name longtext CHARACTER SET utf8mb4, IN p_id bigint, IN p_size int, OUT p_table longtext CHARACTER SET utf8mb4,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_use_polled(p_name, 'change');
    CALL imq_lock_polled(p_name);
    CALL imq_polled_settings(p_name, p_table);
    SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(d.id, d.ident) ORDER BY d.id), ']') INTO p_items
    FROM (
        SELECT id, ident FROM mq_polled_row
        WHERE name = p_name AND state = 'E' AND (p_id IS NULL OR id = p_id)
        ORDER BY run_at, id LIMIT p_size
    ) AS d;
END
