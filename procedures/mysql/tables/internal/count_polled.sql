-- count_polled: count the rows of a polling table that are in one state, up to 10,000.
-- Arguments:   p_name, p_state (A claimed, N waiting or E dead)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_count_polled(
    IN p_name varchar(200) CHARACTER SET utf8mb4, IN p_state char(1) CHARACTER SET ascii, OUT p_count bigint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    SELECT COUNT(*) INTO p_count
    FROM (
        SELECT 1 FROM mq_polled_row AS r FORCE INDEX (polled_row_due) WHERE r.name = p_name AND r.state = p_state LIMIT 10000
    ) AS r;
END
