-- take_ready: delete rows of the ready table that are locked already, and add them to the items of a claim.
-- Arguments:   p_type, p_found (a JSON array of [id, attempt, priority, run_at]), p_items (a JSON array, or NULL)
-- Returns:     p_items, longer
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     CALL mq_take_ready('email', '[[17,1,0,"2030-01-01 00:00:00.000000"]]', @items);

DROP PROCEDURE IF EXISTS mq_take_ready;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_take_ready(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_found longtext CHARACTER SET utf8mb4,
    INOUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DELETE r
    FROM JSON_TABLE(p_found, '$[*]' COLUMNS (
        id bigint PATH '$[0]', priority smallint PATH '$[2]', run_at datetime(6) PATH '$[3]'
    )) AS j
    STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY) ON r.type = p_type AND r.priority = j.priority AND r.run_at = j.run_at AND r.id = j.id;
    SET p_items = IF(p_items IS NULL, p_found, CONCAT(LEFT(p_items, CHAR_LENGTH(p_items) - 1), ',', SUBSTRING(p_found, 2)));
END//

DELIMITER ;
