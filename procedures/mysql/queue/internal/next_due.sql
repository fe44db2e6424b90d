-- next_due: the core has no schedules; the area schedules replaces this.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_next_due(
    IN p_type varchar(200) CHARACTER SET utf8mb4, OUT p_next_at datetime(6)
)
SQL SECURITY DEFINER CONTAINS SQL
BEGIN
    SET p_next_at = NULL;
END
