-- claim_rows: claim up to p_size rows of a polling table under one new batch key.
-- Arguments:   p_name (1 to 200 characters), p_size (1 to 10,000; NULL: 1), p_consumer (1 to 200 characters; NULL: the
--              application name), p_lease_seconds (1 to 86,400; NULL: 60)
-- Returns:     id, row_key, row_data (JSON objects), attempt, batch_key, lease_until: rows to retry first, then new rows in their
--              order; no rows when none is ready
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; claims of one table wait for each other until it ends;
--              skips rows that others have locked
-- Example:     CALL mq_claim_rows('orders', 100, 'worker-1', 60);
--
-- The user's table is read and written with the caller's rights. The called procedures use the queue's tables with the
-- rights of mq_owner.
--
-- An entry is a row of mq_polled_row. It records one claimed, waiting or dead row of the table.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_claim_rows(
    IN p_name longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_consumer longtext CHARACTER SET utf8mb4,
    IN p_lease_seconds bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_key varchar(36) CHARACTER SET utf8mb4;
    DECLARE v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_table, v_shape, v_due, v_rows, v_more, v_items, v_written, v_refused, v_ready,
        v_active longtext CHARACTER SET utf8mb4;
    DECLARE v_left int DEFAULT COALESCE(p_size, 1);
    DECLARE v_taken, v_new, v_count, v_failed, v_dead, v_gone bigint DEFAULT 0;
    DECLARE v_from_place, v_look_for_lost, v_own tinyint;
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

    CALL imq_require_name('name', p_name, 0);
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_require_name('consumer', p_consumer, 1);
    CALL imq_require_range('lease_seconds', p_lease_seconds, 1, 86400);
    CALL imq_begin_call(1, v_own);
    CALL imq_consumer_name(p_consumer, v_consumer);
    CALL imq_open_claim(p_name, v_left, v_consumer, COALESCE(p_lease_seconds, 60), v_key, v_table, v_due);
    CALL imq_polled_shape(v_table, v_shape);
    SELECT s.ready, s.active, t.taken, t.count_, t.from_place AND s.shape = 'e'
    INTO v_ready, v_active, v_taken, v_look_for_lost, v_from_place
    FROM JSON_TABLE(v_shape, '$' COLUMNS (shape varchar(1) CHARACTER SET utf8mb4 PATH '$.shape',
        ready longtext CHARACTER SET utf8mb4 PATH '$.ready',
        active longtext CHARACTER SET utf8mb4 PATH '$.active')) AS s
    JOIN JSON_TABLE(v_table, '$' COLUMNS (taken bigint PATH '$.taken', count_ tinyint PATH '$.count',
        from_place tinyint PATH '$.from_place')) AS t;

    IF v_due IS NOT NULL THEN
        CALL imq_take_due(v_shape, v_key, v_due, v_rows);
        SELECT v_left - COUNT(*) INTO v_left FROM JSON_TABLE(CONCAT('[', COALESCE(v_rows, ''), ']'),
            '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j;
    END IF;
    -- Look for lost rows once a second, and below when the claim has too few rows.
    IF v_left > 0 AND v_look_for_lost THEN
        CALL imq_pick_lost(v_shape, v_table, v_key, v_left, v_more, v_count);
        SET v_rows = NULLIF(CONCAT_WS(',', v_rows, v_more), ''), v_left = v_left - v_count;
    END IF;
    IF v_left > 0 THEN
        CALL imq_pick_rows(v_shape, v_table, v_key, v_left, 0, v_taken, v_from_place, v_more, v_new);
        SET v_rows = NULLIF(CONCAT_WS(',', v_rows, v_more), ''), v_left = v_left - v_new;
        IF v_from_place AND v_left > 0 THEN
            -- Rows may have appeared before the low-water mark.
            SET v_from_place = 0;
            CALL imq_pick_rows(v_shape, v_table, v_key, v_left, 0, v_taken + v_new, 0, v_more, v_count);
            SET v_rows = NULLIF(CONCAT_WS(',', v_rows, v_more), ''), v_left = v_left - v_count, v_new = v_new + v_count;
        END IF;
    END IF;
    IF v_left > 0 AND NOT v_look_for_lost THEN
        CALL imq_pick_lost(v_shape, v_table, v_key, v_left, v_more, v_count);
        SET v_rows = NULLIF(CONCAT_WS(',', v_rows, v_more), ''), v_left = v_left - v_count;
    END IF;

    IF v_active <> '' AND v_rows IS NOT NULL THEN
        CALL imq_claimed_rows(v_key, v_items, v_written);
        IF v_items IS NOT NULL THEN
            CALL imq_write_rows(v_shape, v_items, v_ready, v_active, 'set', v_more, v_refused);
            SET v_written = CONCAT('[', CONCAT_WS(',', SUBSTRING(v_written, 2, CHAR_LENGTH(v_written) - 2),
                SUBSTRING(v_more, 2, CHAR_LENGTH(v_more) - 2)), ']');
            IF v_refused IS NOT NULL THEN
                -- A row whose claim the table refuses must not stop the others.
                CALL imq_fail_rows(v_shape, v_key, v_refused, 0, v_failed, v_dead, v_gone);
            END IF;
        END IF;
    END IF;
    CALL imq_seal_claim(v_key, v_written, v_rows, IF(v_new > 0, NOT v_from_place, NULL));
    CALL imq_end_call(v_own);
END
