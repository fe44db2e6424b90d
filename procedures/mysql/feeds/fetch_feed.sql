-- fetch_feed: return the rows after a consumer's position, in the order of their numbers.
-- Arguments:   p_feed, p_consumer (1 to 200 characters each; a new consumer starts at the first row), p_size (1 to 10,000;
--              NULL: 100)
-- Returns:     feed_position (the row's number), row_key and row_data (JSON objects of the key columns, and of all)
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: reads only, without locks; returns the same rows again until advance_feed moves the position
-- Example:     CALL mq_fetch_feed('orders', 'search', 100);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_fetch_feed(
    IN p_feed longtext CHARACTER SET utf8mb4,
    IN p_consumer longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_columns, v_keys, v_places, v_key, v_row longtext CHARACTER SET utf8mb4;
    DECLARE v_last, v_position, v_nothing bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('feed', p_feed, 0);
    CALL imq_require_name('consumer', p_consumer, 0);
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_begin_call(0, v_own);
    -- Read the counter before the rows: all numbers up to it are committed, and no row above it is read.
    CALL imq_find_feed(p_feed, p_consumer, v_last, v_position, v_columns, v_keys, v_places);
    CALL imq_row_json(v_columns, v_keys, 't', v_key);
    CALL imq_row_json(v_columns, NULL, 't', v_row);
    CALL imq_run_template(JSON_SET(v_places, '$.key', v_key, '$.row', v_row, '$.position', v_position, '$.last', v_last, '$.size',
            COALESCE(p_size, 100)),
        'SELECT t.{sync} AS feed_position, {key} AS row_key, {row} AS row_data
        FROM {table} AS t {index} WHERE t.{sync} > {position} AND t.{sync} <= {last} ORDER BY t.{sync} LIMIT {size}', v_nothing);
    CALL imq_end_call(v_own);
END
