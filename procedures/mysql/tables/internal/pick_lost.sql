-- pick_lost: claim rows at active_value that have no entry.
-- Arguments:   p_shape (from imq_polled_shape), p_table and p_batch_key (from imq_open_claim), p_size
-- Returns:     p_rows: '[id,row],...' of the claimed rows, NULL when there are none; p_count
-- Transaction: joins the caller's; reads one index entry more than there are claimed rows

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_pick_lost(
    IN p_shape longtext CHARACTER SET utf8mb4, IN p_table longtext CHARACTER SET utf8mb4,
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, IN p_size int, OUT p_rows longtext CHARACTER SET utf8mb4,
    OUT p_count bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_known, v_nothing bigint;
    SET p_rows = NULL, p_count = 0;
    IF JSON_UNQUOTE(JSON_EXTRACT(p_shape, '$.active')) <> '' THEN
        -- Count the entries before the rows: rows finished in between make the count of rows smaller, never larger.
        CALL imq_count_active(p_batch_key, v_known);
        CALL imq_run_template(p_shape, REPLACE('SELECT COUNT(*) INTO @mq_n
            FROM (SELECT 1 FROM {table} AS t {by_claim} WHERE {is_active} LIMIT {size}) AS r', '{size}', v_known + 1), v_nothing);
        IF @mq_n > v_known THEN
            CALL imq_pick_rows(p_shape, p_table, p_batch_key, p_size, 1, v_known + 1, 0, p_rows, p_count);
        END IF;
    END IF;
END
