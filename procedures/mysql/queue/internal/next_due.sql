-- next_due: the core has no schedules; the area schedules replaces this.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_next_due(
    IN p_types longtext CHARACTER SET utf8mb4, OUT p_next longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER CONTAINS SQL
BEGIN
    SET p_next = '[]';
END
