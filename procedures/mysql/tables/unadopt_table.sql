-- unadopt_table: forget a polling table: claimed rows get their ready_value back, and no more rows are claimed.
-- Arguments:   p_name (1 to 200 characters)
-- Returns:     affected: 1; 0 when there is no such polling table
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for claims of the table and for transactions that
--              have locked claimed rows
-- Example:     CALL mq_unadopt_table('orders');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_unadopt_table(IN p_name longtext CHARACTER SET utf8mb4)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_table, v_shape, v_items, v_written, v_refused, v_ready, v_active longtext CHARACTER SET utf8mb4;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;

    CALL imq_require_name('name', p_name, 0);
    CALL imq_begin_call(1, v_own);
    CALL imq_open_release(p_name, v_table, v_items);
    IF v_items IS NOT NULL THEN
        BEGIN
            -- The table was dropped or changed: there is nothing to give back.
            DECLARE EXIT HANDLER FOR 50005, 50006, 1176 BEGIN END;
            CALL imq_polled_shape(v_table, v_shape);
            SELECT s.ready, s.active INTO v_ready, v_active
            FROM JSON_TABLE(v_shape, '$' COLUMNS (ready longtext CHARACTER SET utf8mb4 PATH '$.ready',
                active longtext CHARACTER SET utf8mb4 PATH '$.active')) AS s;
            CALL imq_write_rows(v_shape, v_items, v_active, v_ready, 'set', v_written, v_refused);
        END;
    END IF;
    IF v_table IS NOT NULL THEN
        CALL imq_drop_polled(p_name);
    END IF;
    SELECT v_table IS NOT NULL AS affected;
    CALL imq_end_call(v_own);
END
