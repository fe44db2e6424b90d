-- publish_feed: number up to p_size rows whose sync column is NULL.
-- Arguments:   p_feed (1 to 200 characters), p_size (1 to 10,000; NULL: 500)
-- Returns:     count
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED and holds the feed's counter until it ends: publishers of one
--              feed wait for each other; passes over rows that writers have locked
-- Example:     CALL mq_publish_feed('orders', 500);

DROP PROCEDURE IF EXISTS mq_publish_feed;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_publish_feed(
    IN p_feed longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_table, v_label, v_keys, v_picked, v_order, v_equal, v_kept longtext CHARACTER SET utf8mb4;
    DECLARE v_sync, v_index varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_last bigint;
    DECLARE v_count bigint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        SET @mq_sql = NULL, @mq_n = NULL;
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL mq_require_name('feed', p_feed, 0);
    CALL mq_require_range('size', p_size, 1, 10000);
    CALL mq_begin_call(1, v_own);
    CALL mq_find_feed(p_feed, v_last, v_table, v_sync, v_label, v_keys, v_index);
    SET @mq_sql = CONCAT('SELECT EXISTS (SELECT 1 FROM ', v_table, ' AS t ', v_index, ' WHERE t.', v_sync, ' IS NULL) INTO @mq_n');
    PREPARE mq_statement FROM @mq_sql;
    EXECUTE mq_statement;
    IF @mq_n THEN
        -- The counter before the rows: whoever waits here holds no row that others want.
        SET v_last = NULL;
        SELECT last_number INTO v_last FROM mq_feed WHERE name = p_feed FOR UPDATE;
        IF v_last IS NULL THEN
            CALL mq_raise_error('not_found', CONCAT('feed: there is no feed ', p_feed));
        END IF;
        SELECT GROUP_CONCAT('t.', j.quoted, ' AS k', j.n ORDER BY j.n), GROUP_CONCAT('r.k', j.n ORDER BY j.n),
            GROUP_CONCAT('t.', j.quoted, ' = c.k', j.n ORDER BY j.n SEPARATOR ' AND ')
        INTO v_picked, v_order, v_equal
        FROM JSON_TABLE(v_keys, '$[*]' COLUMNS (n int PATH '$.n', quoted varchar(200) CHARACTER SET utf8mb4 PATH '$.quoted')) AS j;
        -- Columns that an UPDATE sets by itself keep what the writer's has set.
        SELECT COALESCE(GROUP_CONCAT(', t.`', REPLACE(c.column_name, '`', '``'), '` = t.`', REPLACE(c.column_name, '`', '``'), '`'
            SEPARATOR ''), '')
        INTO v_kept
        FROM information_schema.columns AS c
        JOIN mq_feed AS f ON f.name = p_feed
        WHERE c.table_schema = IF(f.table_schema = '', DATABASE(), f.table_schema) AND c.table_name = f.table_name
            AND c.extra LIKE '%on update%';
        SET @mq_sql = CONCAT('UPDATE (SELECT r.*, ROW_NUMBER() OVER (ORDER BY ', v_order, ') AS n FROM (SELECT ', v_picked,
            ' FROM ', v_table, ' AS t ', v_index, ' WHERE t.', v_sync, ' IS NULL LIMIT ', COALESCE(p_size, 500),
            ' FOR UPDATE SKIP LOCKED) AS r) AS c STRAIGHT_JOIN ', v_table, ' AS t ON ', v_equal,
            ' SET t.', v_sync, ' = ', v_last, ' + c.n', v_kept);
        PREPARE mq_statement FROM @mq_sql;
        EXECUTE mq_statement;
        SET v_count = ROW_COUNT();
        IF v_count > 0 THEN
            SET @mq_sql = CONCAT('SELECT COUNT(*) INTO @mq_n FROM ', v_table, ' AS t ', v_index, ' WHERE t.', v_sync, ' > ', v_last,
                ' AND t.', v_sync, ' <= ', v_last + v_count);
            PREPARE mq_statement FROM @mq_sql;
            EXECUTE mq_statement;
            IF @mq_n < v_count THEN
                CALL mq_raise_error('unsuitable_table', CONCAT('a trigger of ', LEFT(v_label, 40), ' keeps rows from being numbered'));
            END IF;
            UPDATE mq_feed SET last_number = v_last + v_count WHERE name = p_feed;
        END IF;
    END IF;
    DEALLOCATE PREPARE mq_statement;
    SET @mq_sql = NULL, @mq_n = NULL;
    CALL mq_end_call(v_own);
    SELECT v_count AS count;
END//

DELIMITER ;
