-- retry_rows: send dead rows of an adopted table round again, with all their attempts.
-- Arguments:   p_name, p_id (of the row's claim; NULL: all, up to 10,000 in one call)
-- Returns:     count of rows sent round again
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for others that have locked these rows
-- Example:     CALL mq_retry_rows('orders', NULL);

DROP PROCEDURE IF EXISTS mq_retry_rows;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_retry_rows(
    IN p_name longtext CHARACTER SET utf8mb4,
    IN p_id bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_shape, v_ids, v_written, v_refused, v_status, v_ready, v_error longtext CHARACTER SET utf8mb4;
    DECLARE v_count bigint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;

    CALL mq_require_name('name', p_name, 0);
    CALL mq_begin_call(1, v_own);
    CALL mq_lock_polled(p_name);
    CALL mq_polled_shape(p_name, v_shape);
    SELECT status, ready, error INTO v_status, v_ready, v_error
    FROM JSON_TABLE(v_shape, '$' COLUMNS (
        status longtext CHARACTER SET utf8mb4 PATH '$.status', ready longtext CHARACTER SET utf8mb4 PATH '$.ready',
        error longtext CHARACTER SET utf8mb4 PATH '$.error'
    )) AS s;
    SELECT CONCAT('[', GROUP_CONCAT(d.id ORDER BY d.id), ']') INTO v_ids
    FROM (
        SELECT id FROM mq_polled_row
        WHERE name = p_name AND state = 'E' AND (p_id IS NULL OR id = p_id)
        ORDER BY run_at, id LIMIT 10000
    ) AS d;
    IF v_ids IS NOT NULL THEN
        SET v_written = v_ids;
        IF v_status <> '' THEN
            CALL mq_write_rows(v_shape, v_ids, v_error, v_ready, 'set', v_written, v_refused);
            -- Others have changed or deleted them.
            DELETE e FROM JSON_TABLE(v_ids, '$[*]' COLUMNS (id bigint PATH '$')) AS j
            STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
            LEFT JOIN JSON_TABLE(COALESCE(v_written, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS w ON w.id = e.id
            LEFT JOIN JSON_TABLE(COALESCE(v_refused, '[]'), '$[*]' COLUMNS (id bigint PATH '$[0]')) AS r ON r.id = e.id
            WHERE w.id IS NULL AND r.id IS NULL;
        END IF;
        UPDATE JSON_TABLE(COALESCE(v_written, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS j
        STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
        SET e.state = 'N', e.attempts = 0, e.run_at = UTC_TIMESTAMP(6), e.active = 0;
        SET v_count = COALESCE(JSON_LENGTH(v_written), 0);
    END IF;
    SELECT v_count AS count;
    CALL mq_end_call(v_own);
END//

DELIMITER ;
