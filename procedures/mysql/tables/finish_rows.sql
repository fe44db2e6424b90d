-- finish_rows: finish a batch of rows, or a part of it: all are done except for its failures.
-- Arguments:   p_batch_key, p_outcomes (a JSON object per line; error: the row failed; retry_after_seconds: when to retry
--              it, without it 5 seconds, doubled for each attempt up to an hour, with jitter; dead: 1 for never;
--              released: 1 gives it back), p_keep_others (1: only what the list names is finished, and the others stay claimed;
--              NULL: 0)
-- Returns:     done, failed (to be retried, or given back), dead, gone (changed or deleted by others): counts of rows
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50008 lease_lost
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for transactions that have locked these rows
-- Example:     CALL mq_finish_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"id":17,"error":"busy"}', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_finish_rows(
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_outcomes longtext CHARACTER SET utf8mb4,
    IN p_keep_others bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_table, v_shape, v_items, v_pairs, v_failed, v_released, v_others, v_ids, v_written, v_refused, v_letter, v_ready, v_active,
        v_done longtext CHARACTER SET utf8mb4;
    DECLARE v_done_count, v_failed_count, v_dead_count, v_gone_count, v_gone bigint DEFAULT 0;
    DECLARE v_delete, v_flag tinyint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR 1176
    BEGIN
        CALL imq_undo_call(v_own);
        CALL imq_missing_index(v_table);
    END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;

    CALL imq_require_key(p_batch_key);
    CALL imq_require_range('keep_others', p_keep_others, 0, 1);
    CALL imq_begin_call(1, v_own);
    CALL imq_drop_polled_batch(p_batch_key, IF(p_keep_others = 1, COALESCE(p_outcomes, ''), NULL), v_table, v_items);
    IF v_table IS NULL THEN
        CALL imq_raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    ELSE
        CALL imq_polled_shape(v_table, v_shape);
        IF p_outcomes <> '' THEN
            SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(j.id, 0) ORDER BY j.id), ']') INTO v_pairs
            FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j;
            CALL imq_read_outcomes(p_outcomes, v_pairs, 0, v_failed, v_released, v_others, v_others);
            -- Combines [id, attempt, retry, error] of the failures with [id, ident, active, attempts] of the entries.
            SELECT CONCAT('[', GROUP_CONCAT(
                IF(m.failed, JSON_ARRAY(m.id, m.ident, m.active, m.attempts, m.retry, m.error), NULL) ORDER BY m.id), ']'),
                CONCAT('[', GROUP_CONCAT(IF(m.failed, NULL, JSON_ARRAY(m.id, m.ident, m.active, m.attempts)) ORDER BY m.id), ']')
            INTO v_failed, v_items
            FROM (
                SELECT u.id, u.ident, u.active, u.attempts, MAX(u.failed) OVER w AS failed, MAX(u.retry) OVER w AS retry,
                    MAX(u.error) OVER w AS error
                FROM (
                    SELECT j.id, j.ident, j.active, j.attempts, 0 AS failed, NULL AS retry, NULL AS error
                    FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]',
                        ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
                        active tinyint PATH '$[2]', attempts int PATH '$[3]')) AS j
                    UNION ALL
                    SELECT f.id, NULL, NULL, NULL, 1, f.retry, f.error
                    FROM JSON_TABLE(COALESCE(v_failed, '[]'), '$[*]' COLUMNS (id bigint PATH '$[0]', retry int PATH '$[2]',
                        error longtext CHARACTER SET utf8mb4 PATH '$[3]')) AS f
                    UNION ALL
                    SELECT r.id, NULL, NULL, NULL, 1, -2, NULL
                    FROM JSON_TABLE(COALESCE(v_released, '[]'), '$[*]' COLUMNS (id bigint PATH '$[0]')) AS r
                ) AS u
                WINDOW w AS (PARTITION BY u.id)
            ) AS m
            WHERE m.ident IS NOT NULL;
        END IF;
        SELECT s.shape, s.ready, s.active, s.done INTO v_letter, v_ready, v_active, v_done
        FROM JSON_TABLE(v_shape, '$' COLUMNS (shape varchar(1) CHARACTER SET utf8mb4 PATH '$.shape',
            ready longtext CHARACTER SET utf8mb4 PATH '$.ready', active longtext CHARACTER SET utf8mb4 PATH '$.active',
            done longtext CHARACTER SET utf8mb4 PATH '$.done')) AS s;
        SET v_delete = JSON_EXTRACT(v_table, '$.deletes') = 1;
        SET v_flag = IF(v_items IS NULL OR v_letter IN ('b', 'd'), 2, 0);
        WHILE v_flag < 2 DO
            SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(j.id, j.ident, j.active, j.attempts) ORDER BY j.id), ']') INTO v_ids
            FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]', ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
                active tinyint PATH '$[2]', attempts int PATH '$[3]')) AS j
            WHERE j.active = v_flag;
            IF v_ids IS NOT NULL THEN
                CALL imq_write_rows(v_shape, v_ids, IF(v_flag, v_active, v_ready), v_done, IF(v_delete, 'delete', 'set'),
                    v_written, v_refused);
                SET v_done_count = v_done_count + COALESCE(JSON_LENGTH(v_written), 0),
                    v_gone_count = v_gone_count + JSON_LENGTH(v_ids) - COALESCE(JSON_LENGTH(v_written), 0)
                        - COALESCE(JSON_LENGTH(v_refused), 0);
                IF v_refused IS NOT NULL THEN
                    -- A row that the table refuses has failed.
                    SET v_failed = CONCAT('[', CONCAT_WS(',', SUBSTRING(v_failed, 2, CHAR_LENGTH(v_failed) - 2),
                        SUBSTRING(v_refused, 2, CHAR_LENGTH(v_refused) - 2)), ']');
                END IF;
            END IF;
            SET v_flag = v_flag + 1;
        END WHILE;
        IF v_letter IN ('b', 'd') THEN
            SET v_done_count = COALESCE(JSON_LENGTH(v_items), 0);
        END IF;
        CALL imq_fail_rows(v_shape, p_batch_key, v_failed, 1, v_failed_count, v_dead_count, v_gone);
        SET v_gone_count = v_gone_count + v_gone;
    END IF;
    SELECT v_done_count AS done, v_failed_count AS failed, v_dead_count AS dead, v_gone_count AS gone;
    CALL imq_end_call(v_own);
END
