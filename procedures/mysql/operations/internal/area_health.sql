-- area_health: add what queue_health checks for the areas: nothing. The area schedules replaces this.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_area_health(INOUT p_checks longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
END
