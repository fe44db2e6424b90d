-- loosen_groups: let groups go on after limits by group were raised or taken away.
-- Arguments:   p_type
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; passes over messages that others have locked
-- Example:     CALL mq_loosen_groups('email');

DROP PROCEDURE IF EXISTS mq_loosen_groups;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_loosen_groups(
    IN p_type varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DO p_type;
END//

DELIMITER ;
