-- group_limits: whether groups of a type have limits of their own.
-- Returns:     p_some: 1 or 0; p_most: the highest max_active of a group; 0: none
-- Transaction: reads only; the caller has locked the policy

DROP PROCEDURE IF EXISTS imq_group_limits;
DELIMITER //
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_group_limits(
    IN p_type varchar(200) CHARACTER SET utf8mb4, OUT p_some tinyint, OUT p_most int
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    SELECT COALESCE(MAX(max_active > 0 OR rate > 0), 0), COALESCE(MAX(max_active), 0) INTO p_some, p_most
    FROM mq_queue_group FORCE INDEX (PRIMARY) WHERE type = p_type;
    SET p_some = COALESCE(p_some, 0);
END//
DELIMITER ;
