-- send_due: the core has no schedules; the area schedules replaces this.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_send_due(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int
)
SQL SECURITY DEFINER CONTAINS SQL
BEGIN
END
