-- fail_rows: attempts at rows have failed: each waits for its next attempt, or is dead when it has none left.
-- Arguments:   p_name (the adopted table), p_shape (mq_polled_shape), p_items (a JSON array of [id, retry, error];
--              retry: seconds; null: 5 doubled
--              for each attempt; -1: dead now; -2: given back without costing an attempt)
-- Returns:     p_failed, p_dead, p_gone: counts
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     CALL mq_fail_rows('orders', v_shape, '[[17,30,"busy"]]', v_failed, v_dead, v_gone);

DROP PROCEDURE IF EXISTS mq_fail_rows;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_fail_rows(
    IN p_name varchar(200) CHARACTER SET utf8mb4,
    IN p_shape longtext CHARACTER SET utf8mb4,
    IN p_items longtext CHARACTER SET utf8mb4,
    OUT p_failed bigint,
    OUT p_dead bigint,
    OUT p_gone bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_ready, v_active, v_error, v_ids, v_written, v_refused longtext CHARACTER SET utf8mb4;
    DECLARE v_all_written, v_all_refused longtext CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_status longtext CHARACTER SET utf8mb4;
    DECLARE v_max, v_step int;
    SELECT max_attempts INTO v_max FROM mq_polled WHERE name = p_name;
    SELECT ready, active, error, status INTO v_ready, v_active, v_error, v_status
    FROM JSON_TABLE(p_shape, '$' COLUMNS (
        ready longtext CHARACTER SET utf8mb4 PATH '$.ready', active longtext CHARACTER SET utf8mb4 PATH '$.active',
        error longtext CHARACTER SET utf8mb4 PATH '$.error', status longtext CHARACTER SET utf8mb4 PATH '$.status'
    )) AS s;
    SET p_gone = 0, v_step = IF(v_status = '', 4, 0);
    WHILE v_step < 4 DO
        -- Those that die and those that do not, at ready_value and at active_value.
        SELECT CONCAT('[', GROUP_CONCAT(e.id ORDER BY e.id), ']') INTO v_ids
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', retry int PATH '$[1]')) AS j
        STRAIGHT_JOIN mq_polled_row AS e ON e.id = j.id
        WHERE e.active = v_step MOD 2
            AND (v_step < 2) = (COALESCE(j.retry = -1, FALSE) OR e.attempts >= v_max AND COALESCE(j.retry <> -2, TRUE));
        IF v_ids IS NOT NULL THEN
            CALL mq_write_rows(p_shape, v_ids, IF(v_step MOD 2, v_active, v_ready), IF(v_step < 2, v_error, v_ready),
                IF(v_step = 2, 'look', 'set'), v_written, v_refused);
            IF v_written IS NOT NULL THEN
                SET v_all_written = CONCAT(v_all_written, IF(v_all_written = '', '', ','),
                    SUBSTRING(v_written, 2, CHAR_LENGTH(v_written) - 2));
            END IF;
            IF v_refused IS NOT NULL THEN
                SET v_all_refused = CONCAT(v_all_refused, IF(v_all_refused = '', '', ','),
                    SUBSTRING(v_refused, 2, CHAR_LENGTH(v_refused) - 2));
            END IF;
        END IF;
        SET v_step = v_step + 1;
    END WHILE;
    IF v_status <> '' THEN
        DELETE e FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
        LEFT JOIN JSON_TABLE(CONCAT('[', v_all_written, ']'), '$[*]' COLUMNS (id bigint PATH '$')) AS w ON w.id = e.id
        LEFT JOIN JSON_TABLE(CONCAT('[', v_all_refused, ']'), '$[*]' COLUMNS (id bigint PATH '$[0]')) AS r ON r.id = e.id
        WHERE w.id IS NULL AND r.id IS NULL;
        SET p_gone = ROW_COUNT();
    END IF;
    -- Jitter between half and the whole, so that what failed together does not come back together. Whom the table will not have
    -- dead must try that again: its status would make it claimable.
    UPDATE JSON_TABLE(p_items, '$[*]' COLUMNS (
        id bigint PATH '$[0]', retry int PATH '$[1]', error longtext CHARACTER SET utf8mb4 PATH '$[2]'
    )) AS j
    STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
    LEFT JOIN JSON_TABLE(CONCAT('[', v_all_refused, ']'), '$[*]' COLUMNS (
        id bigint PATH '$[0]', error longtext CHARACTER SET utf8mb4 PATH '$[1]'
    )) AS r ON r.id = e.id
    SET e.state = IF(r.id IS NULL AND (COALESCE(j.retry = -1, FALSE) OR e.attempts >= v_max AND COALESCE(j.retry <> -2, TRUE)),
            'E', 'N'),
        e.run_at = IF(e.state = 'E', v_now, v_now + INTERVAL CAST(1000000 * COALESCE(IF(j.retry >= 0, j.retry, IF(j.retry = -2,
            0, NULL)),
            LEAST(3600, 5 * POW(2, LEAST(e.attempts - 1, 40))) * (0.5 + RAND() / 2)) AS signed) MICROSECOND),
        e.attempts = e.attempts - IF(j.retry = -2, 1, 0),
        e.active = e.active AND r.id IS NOT NULL,
        e.error = LEFT(COALESCE(r.error, IF(j.retry = -2, e.error, j.error)), 4000),
        e.row_json = NULL,
        e.batch_key = NULL;
    SELECT COALESCE(SUM(e.state = 'N'), 0), COALESCE(SUM(e.state = 'E'), 0) INTO p_failed, p_dead
    FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
    STRAIGHT_JOIN mq_polled_row AS e ON e.id = j.id;
END//

DELIMITER ;
