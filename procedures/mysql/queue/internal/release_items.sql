-- release_items: make the messages of a claim that has ended ready again; the attempt does not count.
-- Arguments:   p_type, p_items (what the claim held: a JSON array of [id, number of the attempt, ...])

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_release_items(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_released longtext CHARACTER SET utf8mb4;
    SELECT CONCAT('[', GROUP_CONCAT('[', j.id, ',', j.attempt - 1, ']' ORDER BY j.id), ']') INTO v_released
    FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', attempt int PATH '$[1]')) AS j;
    CALL imq_put_back(p_type, v_released);
END
