-- held_copies: count the entries for each group of equal rows.
-- Returns:     p_held: a JSON array of [hash of the identity in hexadecimal, count]

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_held_copies(
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, OUT p_held longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_status tinyint;
    SELECT b.name, p.status_column IS NOT NULL INTO v_name, v_status
    FROM mq_polled_batch AS b JOIN mq_polled AS p ON p.name = b.name WHERE b.batch_key = p_batch_key;
    SELECT CONCAT('[', COALESCE(GROUP_CONCAT(JSON_ARRAY(HEX(h.ident_hash), h.held)), ''), ']') INTO p_held
    FROM (
        SELECT ident_hash, COUNT(*) AS held FROM mq_polled_row
        WHERE name = v_name AND active = 0 AND (state <> 'E' OR NOT v_status)
        GROUP BY ident_hash
    ) AS h;
END
