-- delete_messages: delete messages whose state row is gone already.
-- Arguments:   p_items (a JSON array of arrays that begin with an id)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; the rows go by primary key
-- Example:     CALL mq_delete_messages('[[17]]');

DROP PROCEDURE IF EXISTS mq_delete_messages;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_delete_messages(
    IN p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DELETE m, d
    FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
    LEFT JOIN mq_dedup AS d FORCE INDEX (PRIMARY) ON d.type = m.type AND d.dedup_key = m.dedup_key;
END//

DELIMITER ;
