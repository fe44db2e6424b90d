-- next_scheduled: the first type after a name, and not before a prefix, that has a schedule; NULL: none.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_next_scheduled(
    IN p_after varchar(200) CHARACTER SET utf8mb4, IN p_prefix varchar(200) CHARACTER SET utf8mb4,
    OUT p_type varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    SELECT MIN(s.type) INTO p_type FROM (
        SELECT type FROM mq_schedule FORCE INDEX (schedule_due) WHERE type > p_after AND type >= p_prefix ORDER BY type ASC LIMIT 1
    ) AS s;
END
