-- redrive_polled: retry dead rows of a polling table, in a call's own transaction or savepoint.
-- Arguments:   p_name, p_id (of one entry; NULL: all, those that died first), p_size
-- Returns:     affected: rows that will be retried

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_redrive_polled(
    IN p_name longtext CHARACTER SET utf8mb4, IN p_id bigint, IN p_size int
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_table, v_shape, v_items, v_written, v_refused, v_gone, v_status, v_ready, v_error longtext CHARACTER SET utf8mb4;
    DECLARE v_count bigint DEFAULT 0;
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

    CALL imq_begin_call(1, v_own);
    CALL imq_open_retry(p_name, p_id, p_size, v_table, v_items);
    CALL imq_polled_shape(v_table, v_shape);
    SELECT s.status, s.ready, s.error INTO v_status, v_ready, v_error
    FROM JSON_TABLE(v_shape, '$' COLUMNS (status longtext CHARACTER SET utf8mb4 PATH '$.status',
        ready longtext CHARACTER SET utf8mb4 PATH '$.ready', error longtext CHARACTER SET utf8mb4 PATH '$.error')) AS s;
    IF v_items IS NOT NULL THEN
        IF v_status = '' THEN
            SELECT CONCAT('[', GROUP_CONCAT(j.id ORDER BY j.id), ']') INTO v_written
            FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j;
        ELSE
            CALL imq_write_rows(v_shape, v_items, v_error, v_ready, 'set', v_written, v_refused);
            -- Entries whose rows others have changed or deleted.
            SELECT CONCAT('[', GROUP_CONCAT(m.id), ']') INTO v_gone
            FROM (
                SELECT u.id
                FROM (
                    SELECT j.id, 0 AS known FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
                    UNION ALL
                    SELECT w.id, 1 FROM JSON_TABLE(COALESCE(v_written, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS w
                    UNION ALL
                    SELECT r.id, 1 FROM JSON_TABLE(COALESCE(v_refused, '[]'), '$[*]' COLUMNS (id bigint PATH '$[0]')) AS r
                ) AS u
                GROUP BY u.id
                HAVING MAX(u.known) = 0
            ) AS m;
        END IF;
        CALL imq_revive_rows(p_name, v_written, v_gone);
        SET v_count = COALESCE(JSON_LENGTH(v_written), 0);
    END IF;
    SELECT v_count AS affected;
    CALL imq_end_call(v_own);
END
