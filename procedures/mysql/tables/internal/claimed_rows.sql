-- claimed_rows: return the entries of a claim so far.
-- Returns:     p_ready: a JSON array of [id, ident, 0, attempts] of entries whose rows are at ready_value; p_active: a JSON
--              array of the ids of the others; NULL when there are none

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_claimed_rows(
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, OUT p_ready longtext CHARACTER SET utf8mb4,
    OUT p_active longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    SELECT CONCAT('[', GROUP_CONCAT(IF(active, NULL, JSON_ARRAY(id, ident, 0, attempts)) ORDER BY id), ']'),
        CONCAT('[', GROUP_CONCAT(IF(active, id, NULL) ORDER BY id), ']')
    INTO p_ready, p_active
    FROM mq_polled_row WHERE batch_key = p_batch_key;
END
