-- free_groups: in a grouped queue, messages leave the hands of their consumer for good: their groups go on.
-- Arguments:   p_type, p_items (a JSON array of arrays that begin with an id; the messages are still there)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; never waits
-- Example:     CALL mq_free_groups('invoice', '[[17]]');

DROP PROCEDURE IF EXISTS mq_free_groups;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_free_groups(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_groups longtext CHARACTER SET utf8mb4;
    CALL mq_drop_locks(p_type, p_items, v_groups);
    IF v_groups IS NOT NULL THEN
        CALL mq_issue_tickets(p_type, v_groups);
    END IF;
END//

DELIMITER ;
