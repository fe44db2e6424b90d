-- next_scheduled: the core has no schedules; the area schedules replaces this.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_next_scheduled(
    IN p_after varchar(200) CHARACTER SET utf8mb4, IN p_prefix varchar(200) CHARACTER SET utf8mb4,
    OUT p_type varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER CONTAINS SQL
BEGIN
    SET p_type = NULL;
END
