-- free_rows: of rows with a key, return those that have no entry.
-- Arguments:   p_batch_key (from imq_open_claim), p_active (0: rows at ready_value, 1: at active_value), p_rows (a JSON array
--              of [0, ident]), p_size
-- Returns:     p_free: the first p_size of them in the same form; NULL when there are none

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_free_rows(
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, IN p_active tinyint, IN p_rows longtext CHARACTER SET utf8mb4,
    IN p_size int, OUT p_free longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_status tinyint;
    SELECT b.name, p.status_column IS NOT NULL INTO v_name, v_status
    FROM mq_polled_batch AS b JOIN mq_polled AS p ON p.name = b.name WHERE b.batch_key = p_batch_key;
    SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(0, f.ident) ORDER BY f.n), ']') INTO p_free
    FROM (
        SELECT j.n, j.ident
        FROM JSON_TABLE(p_rows, '$[*]' COLUMNS (n FOR ORDINALITY, ident longtext CHARACTER SET utf8mb4 PATH '$[1]')) AS j
        WHERE (
            SELECT COUNT(*) FROM mq_polled_row AS e
            WHERE e.name = v_name AND e.ident_hash = UNHEX(SHA2(j.ident, 256)) AND (e.active = 1 OR p_active = 0)
                AND (e.state <> 'E' OR NOT v_status)
        ) = 0
        ORDER BY j.n LIMIT p_size
    ) AS f;
END
