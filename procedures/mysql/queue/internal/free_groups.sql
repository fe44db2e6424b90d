-- free_groups: in an ordered queue, messages leave the hands of their consumer for good: their groups go on.
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
    -- Without a lock: only rows of our own are deleted below, which no other session locks.
    SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(l.group_key)), ']')
    INTO v_groups
    FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
    STRAIGHT_JOIN mq_group_lock AS l FORCE INDEX (PRIMARY)
        ON l.type = p_type AND l.group_key = COALESCE(m.group_key, '')
    WHERE l.id = m.id;
    IF v_groups IS NOT NULL THEN
        DELETE l
        FROM JSON_TABLE(v_groups, '$[*]' COLUMNS (group_key varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS j
        STRAIGHT_JOIN mq_group_lock AS l FORCE INDEX (PRIMARY) ON l.type = p_type AND l.group_key = j.group_key;
        CALL mq_issue_tickets(p_type, v_groups);
    END IF;
END//

DELIMITER ;
