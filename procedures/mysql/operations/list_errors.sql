-- list_errors: count the dead letters of a queue by their error, exactly.
-- Arguments:   p_type (1 to 200 characters), p_size (the most errors to return, 1 to 10,000; NULL: 20)
-- Returns:     error (its first line, up to 200 characters, with # for each number; '': no error), count, first_at,
--              last_at, last_id; the most frequent error first
-- Errors:      50002 invalid_argument
-- Transaction: reads only: an index entry for each dead letter of the queue
-- Example:     CALL mq_list_errors('email', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_errors(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_size int DEFAULT COALESCE(p_size, 20);
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_range('size', p_size, 1, 10000);
    SELECT g.error_group AS error, g.messages, g.first_at, g.last_at,
        (SELECT d.id FROM mq_dead AS d FORCE INDEX (dead_error) WHERE d.type = p_type AND d.error_group = g.error_group
            ORDER BY d.died_at DESC, d.id DESC LIMIT 1) AS last_id
    FROM (
        SELECT d.error_group, COUNT(*) AS messages, MIN(d.died_at) AS first_at, MAX(d.died_at) AS last_at
        FROM mq_dead AS d FORCE INDEX (dead_error)
        WHERE d.type = p_type
        GROUP BY d.error_group
        ORDER BY messages DESC, d.error_group LIMIT v_size
    ) AS g
    ORDER BY g.messages DESC, g.error_group;
END
