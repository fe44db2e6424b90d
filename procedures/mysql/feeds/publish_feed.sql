-- publish_feed: number up to p_size rows whose sync column is NULL.
-- Arguments:   p_feed (1 to 200 characters), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: rows numbered
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED, and locks the feed's counter until it ends; publishers of
--              one feed wait for each other; skips rows that writers have locked
-- Example:     CALL mq_publish_feed('orders', 500);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_publish_feed(
    IN p_feed longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_all, v_keys, v_places, v_columns longtext CHARACTER SET utf8mb4;
    DECLARE v_last, v_position, v_nothing bigint;
    DECLARE v_count bigint DEFAULT 0;
    DECLARE v_any longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT EXISTS (SELECT 1 FROM {table} AS t {index} WHERE t.{sync} IS NULL) INTO @mq_n';
    -- MariaDB 10.11 ignores SKIP LOCKED in an UPDATE with a join: lock the rows first, and pass their keys to the UPDATE as
    -- a list of texts.
    DECLARE v_lock longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT COUNT(*), CONCAT(''['', GROUP_CONCAT(''['', {texts}, '']'' ORDER BY {order}), '']'') INTO @mq_n, @mq_list
        FROM (SELECT {picked} FROM {table} AS t {index} WHERE t.{sync} IS NULL LIMIT {size} FOR UPDATE SKIP LOCKED) AS r';
    DECLARE v_number longtext CHARACTER SET utf8mb4 DEFAULT
        'UPDATE JSON_TABLE(@mq_list, ''$[*]'' COLUMNS (number FOR ORDINALITY, {columns})) AS c
        STRAIGHT_JOIN {table} AS t {unique} ON {equal} SET t.{sync} = {last} + c.number {kept}';
    DECLARE v_check longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT COUNT(*) INTO @mq_n FROM {table} AS t {index} WHERE t.{sync} > {last} AND t.{sync} <= {last} + {count}';
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        SET @mq_n = NULL, @mq_list = NULL;
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('feed', p_feed, 0);
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_begin_call(1, v_own);
    CALL imq_find_feed(p_feed, NULL, v_last, v_position, v_all, v_keys, v_places);
    CALL imq_run_template(v_places, v_any, v_nothing);
    IF @mq_n THEN
        -- Lock the counter before the rows: a publisher that waits here holds no row locks.
        CALL imq_lock_feed(p_feed, v_last);
        CALL imq_feed_columns(v_places, v_keys, v_columns);
        SET v_places = JSON_SET(JSON_MERGE_PATCH(v_places, v_columns), '$.last', v_last, '$.size', COALESCE(p_size, 1000));
        CALL imq_run_template(v_places, v_lock, v_nothing);
        SET v_count = @mq_n;
    END IF;
    IF v_count > 0 THEN
        CALL imq_run_template(v_places, v_number, v_nothing);
        CALL imq_run_template(v_places, REPLACE(v_check, '{count}', v_count), v_nothing);
        IF @mq_n < v_count THEN
            CALL imq_raise_error('unsuitable_table', CONCAT('a trigger of ',
                LEFT(JSON_UNQUOTE(JSON_EXTRACT(v_places, '$.label')), 40),
                ' prevents numbering: it must not set the sync column'));
        END IF;
        CALL imq_move_feed(p_feed, v_count);
    END IF;
    SET @mq_n = NULL, @mq_list = NULL;
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END
