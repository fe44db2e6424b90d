-- list_errors: count the newest 10,000 dead letters of a queue by their error.
-- Arguments:   p_type (1 to 200 characters), p_size (the most errors to return, 1 to 10,000; NULL: 20)
-- Returns:     error (its first line, up to 200 characters, with # for each number; '': no error), count, first_at,
--              last_at, last_id; the most frequent error first
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_list_errors('email', NULL);

DROP PROCEDURE IF EXISTS mq_list_errors;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_errors(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY DEFINER
READS SQL DATA
BEGIN
    DECLARE v_size int DEFAULT COALESCE(p_size, 20);
    CALL mq_require_name('type', p_type, 0);
    CALL mq_require_range('size', p_size, 1, 10000);
    SELECT e.error, COUNT(*) AS count, MIN(e.died_at) AS first_at, MAX(e.died_at) AS last_at,
        -- The last id of the newest: the two concatenated texts have the same length.
        CAST(RIGHT(MAX(CONCAT(e.died_at, LPAD(e.id, 20, '0'))), 20) AS SIGNED) AS last_id
    FROM (
        SELECT d.error, d.died_at, d.id
        FROM mq_error_group AS d
        WHERE d.type = p_type
        ORDER BY d.died_at DESC, d.id DESC
        LIMIT 10000
    ) AS e
    GROUP BY e.error
    ORDER BY count DESC, e.error
    LIMIT v_size;
END//

DELIMITER ;
