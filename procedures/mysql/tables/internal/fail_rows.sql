-- fail_rows: record failed attempts: each row waits for its next attempt, or is dead when no attempt is left.
-- Arguments:   p_shape (from imq_polled_shape), p_batch_key, p_items (a JSON array of [id, ident, active, attempts, retry,
--              error]; retry: see settle_rows; NULL: no failures), p_rest (1: the other rows of the batch are done)
-- Returns:     p_failed, p_dead, p_gone: counts of rows

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_fail_rows(
    IN p_shape longtext CHARACTER SET utf8mb4, IN p_batch_key varchar(36) CHARACTER SET utf8mb4,
    IN p_items longtext CHARACTER SET utf8mb4, IN p_rest tinyint, OUT p_failed bigint, OUT p_dead bigint,
    OUT p_gone bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_status, v_ready, v_active, v_error, v_items, v_written, v_refused, v_gone longtext CHARACTER SET utf8mb4;
    DECLARE v_all_written, v_all_refused longtext CHARACTER SET utf8mb4;
    DECLARE v_max, v_step int;
    SELECT s.status, s.ready, s.active, s.error, s.max_ INTO v_status, v_ready, v_active, v_error, v_max
    FROM JSON_TABLE(p_shape, '$' COLUMNS (status longtext CHARACTER SET utf8mb4 PATH '$.status',
        ready longtext CHARACTER SET utf8mb4 PATH '$.ready', active longtext CHARACTER SET utf8mb4 PATH '$.active',
        error longtext CHARACTER SET utf8mb4 PATH '$.error', max_ int PATH '$.max')) AS s;
    SET v_step = IF(v_status = '' OR p_items IS NULL, 4, 0);
    WHILE v_step < 4 DO
        -- Four groups: rows that die or are retried, each at ready_value or at active_value.
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(j.id, j.ident) ORDER BY j.id), ']') INTO v_items
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
            active tinyint PATH '$[2]', attempts int PATH '$[3]', retry int PATH '$[4]')) AS j
        WHERE j.active = v_step MOD 2 AND (v_step < 2) = (j.retry <=> -1 OR j.attempts >= v_max AND NOT j.retry <=> -2);
        IF v_items IS NOT NULL THEN
            CALL imq_write_rows(p_shape, v_items, IF(v_step MOD 2, v_active, v_ready), IF(v_step < 2, v_error, v_ready),
                IF(v_step = 2, 'lock', 'set'), v_written, v_refused);
            SET v_all_written = NULLIF(CONCAT_WS(',', v_all_written, SUBSTRING(v_written, 2, CHAR_LENGTH(v_written) - 2)), ''),
                v_all_refused = NULLIF(CONCAT_WS(',', v_all_refused, SUBSTRING(v_refused, 2, CHAR_LENGTH(v_refused) - 2)), '');
        END IF;
        SET v_step = v_step + 1;
    END WHILE;
    IF p_items IS NOT NULL THEN
        -- UNION ALL with a window function: a join would read JSON_TABLE once per row.
        SELECT CONCAT('[', GROUP_CONCAT(
                IF(m.written OR m.refused IS NOT NULL, JSON_ARRAY(m.id, m.retry, m.error, m.refused), NULL) ORDER BY m.id), ']'),
            CONCAT('[', GROUP_CONCAT(IF(m.written OR m.refused IS NOT NULL, NULL, m.id) ORDER BY m.id), ']')
        INTO v_items, v_gone
        FROM (
            SELECT u.n, u.id, u.retry, u.error, MAX(u.written) OVER (PARTITION BY u.id) AS written,
                MAX(u.refused) OVER (PARTITION BY u.id) AS refused
            FROM (
                SELECT 0 AS n, j.id, j.retry, j.error, v_status = '' AS written, NULL AS refused
                FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', retry int PATH '$[4]',
                    error longtext CHARACTER SET utf8mb4 PATH '$[5]')) AS j
                UNION ALL
                SELECT 1, w.id, NULL, NULL, 1, NULL
                FROM JSON_TABLE(CONCAT('[', COALESCE(v_all_written, ''), ']'), '$[*]' COLUMNS (id bigint PATH '$')) AS w
                UNION ALL
                SELECT 2, r.id, NULL, NULL, 0, r.error
                FROM JSON_TABLE(CONCAT('[', COALESCE(v_all_refused, ''), ']'), '$[*]' COLUMNS (
                    id bigint PATH '$[0]', error longtext CHARACTER SET utf8mb4 PATH '$[5]')) AS r
            ) AS u
        ) AS m
        WHERE m.n = 0;
    END IF;
    CALL imq_settle_rows(p_batch_key, v_items, v_gone, p_rest, p_failed, p_dead, p_gone);
END
