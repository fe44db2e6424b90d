-- free_groups: unblock groups of a grouped queue after their messages were finished or dead-lettered.
-- Arguments:   p_type, p_items (a JSON array of arrays that begin with an id; the messages still exist)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_free_groups(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_groups longtext CHARACTER SET utf8mb4;
    CALL imq_drop_locks(p_type, p_items, v_groups);
    IF v_groups IS NOT NULL THEN
        CALL imq_issue_tickets(p_type, v_groups);
    END IF;
END
