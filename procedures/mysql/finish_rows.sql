-- finish_rows: finish a batch of rows: all are done but the failures listed.
-- Arguments:   p_batch_key, p_failures (one a line: id,retry_after_seconds,error; an empty second field: 5 seconds doubled for
--              each attempt, -1: dead now)
-- Returns:     done, failed, dead, gone; all 0 when the batch was lost
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for others that have locked these rows
-- Example:     CALL mq_finish_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '17,30,busy');

DROP PROCEDURE IF EXISTS mq_finish_rows;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_finish_rows(
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_failures longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_shape, v_ids, v_all, v_items, v_failed, v_written, v_refused, v_letter, v_ready, v_active,
        v_done longtext CHARACTER SET utf8mb4;
    DECLARE v_done_count, v_failed_count, v_dead_count, v_gone_count, v_gone bigint DEFAULT 0;
    DECLARE v_delete, v_flag tinyint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;

    CALL mq_require_key(p_batch_key);
    CALL mq_begin_call(1, v_own);
    CALL mq_drop_polled_batch(p_batch_key, v_name, v_ids);
    IF v_ids IS NOT NULL THEN
        SET v_all = SUBSTRING(v_ids, 2, CHAR_LENGTH(v_ids) - 2);
        CALL mq_polled_shape(v_name, v_shape);
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(j.id, 0) ORDER BY j.id), ']') INTO v_items
        FROM JSON_TABLE(v_ids, '$[*]' COLUMNS (id bigint PATH '$')) AS j;
        IF p_failures <> '' THEN
            CALL mq_read_failures(p_failures, v_items, v_failed, v_items);
        END IF;
        -- [id, attempt, retry, error] to [id, retry, error]
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(j.id, j.retry, j.error)), ']') INTO v_failed
        FROM JSON_TABLE(COALESCE(v_failed, '[]'), '$[*]' COLUMNS (
            id bigint PATH '$[0]', retry int PATH '$[2]', error longtext CHARACTER SET utf8mb4 PATH '$[3]'
        )) AS j;
        SELECT shape, ready, active, done INTO v_letter, v_ready, v_active, v_done
        FROM JSON_TABLE(v_shape, '$' COLUMNS (
            shape varchar(1) CHARACTER SET utf8mb4 PATH '$.shape', ready longtext CHARACTER SET utf8mb4 PATH '$.ready',
            active longtext CHARACTER SET utf8mb4 PATH '$.active', done longtext CHARACTER SET utf8mb4 PATH '$.done'
        )) AS s;
        SELECT on_complete = 'delete' INTO v_delete FROM mq_polled WHERE name = v_name;
        SET v_flag = IF(v_items IS NULL OR v_letter IN ('b', 'd'), 2, 0);
        WHILE v_flag < 2 DO
            SELECT CONCAT('[', GROUP_CONCAT(e.id ORDER BY e.id), ']') INTO v_ids
            FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
            STRAIGHT_JOIN mq_polled_row AS e ON e.id = j.id
            WHERE e.active = v_flag;
            IF v_ids IS NOT NULL THEN
                CALL mq_write_rows(v_shape, v_ids, IF(v_flag, v_active, v_ready), v_done, IF(v_delete, 'delete', 'set'),
                    v_written,
                    v_refused);
                SET v_done_count = v_done_count + COALESCE(JSON_LENGTH(v_written), 0),
                    v_gone_count = v_gone_count + JSON_LENGTH(v_ids) - COALESCE(JSON_LENGTH(v_written), 0)
                        - COALESCE(JSON_LENGTH(v_refused), 0);
                IF v_refused IS NOT NULL THEN
                    -- What the table refuses has failed.
                    SELECT CONCAT('[', CONCAT_WS(',', SUBSTRING(v_failed, 2, CHAR_LENGTH(v_failed) - 2),
                        GROUP_CONCAT(JSON_ARRAY(j.id, NULL, j.error))), ']')
                    INTO v_failed
                    FROM JSON_TABLE(v_refused, '$[*]' COLUMNS (
                        id bigint PATH '$[0]', error longtext CHARACTER SET utf8mb4 PATH '$[1]'
                    )) AS j;
                END IF;
            END IF;
            SET v_flag = v_flag + 1;
        END WHILE;
        IF v_letter IN ('b', 'd') THEN
            SET v_done_count = COALESCE(JSON_LENGTH(v_items), 0);
        END IF;
        IF v_failed IS NOT NULL THEN
            CALL mq_fail_rows(v_name, v_shape, v_failed, v_failed_count, v_dead_count, v_gone);
            SET v_gone_count = v_gone_count + v_gone;
        END IF;
        CALL mq_run(CONCAT('DELETE e FROM mq_polled_row AS e FORCE INDEX (PRIMARY) WHERE e.id IN (', v_all,
            ') AND e.state = ''A'''), v_gone);
    END IF;
    SELECT v_done_count AS done, v_failed_count AS failed, v_dead_count AS dead, v_gone_count AS gone;
    CALL mq_end_call(v_own);
END//

DELIMITER ;
