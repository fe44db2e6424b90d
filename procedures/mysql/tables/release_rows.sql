-- release_rows: give claimed rows back without counting an attempt.
-- Arguments:   p_batch_key
-- Returns:     affected: rows given back; 0 when the lease was lost
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for transactions that have locked these rows
-- Example:     CALL mq_release_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_release_rows(IN p_batch_key longtext CHARACTER SET utf8mb4)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_table, v_shape, v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_count, v_dead, v_gone bigint DEFAULT 0;
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
    CALL imq_begin_call(1, v_own);
    CALL imq_drop_polled_batch(p_batch_key, NULL, v_table, v_items);
    IF v_items IS NOT NULL THEN
        CALL imq_polled_shape(v_table, v_shape);
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(j.id, j.ident, j.active, j.attempts, -2, NULL) ORDER BY j.id), ']')
        INTO v_items
        FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]', ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
            active tinyint PATH '$[2]', attempts int PATH '$[3]')) AS j;
        CALL imq_fail_rows(v_shape, p_batch_key, v_items, 1, v_count, v_dead, v_gone);
    END IF;
    SELECT v_count AS affected;
    CALL imq_end_call(v_own);
END
