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
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    DECLARE v_table, v_label, v_all, v_keys, v_picked, v_order, v_texts, v_columns, v_equal, v_kept longtext CHARACTER SET utf8mb4;
    DECLARE v_sync, v_index, v_unique varchar(200) CHARACTER SET utf8mb4;
    -- As the catalog has them: with another character set the server would read all of it.
    DECLARE v_schema, v_name varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci;
    DECLARE v_in_schema, v_named varchar(64) CHARACTER SET utf8mb4;
    DECLARE v_last, v_position bigint;
    DECLARE v_count bigint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        SET @mq_sql = NULL, @mq_n = NULL, @mq_list = NULL;
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL mq_require_name('feed', p_feed, 0);
    CALL mq_require_range('size', p_size, 1, 10000);
    CALL mq_begin_call(1, v_own);
    CALL mq_find_feed(p_feed, NULL, v_last, v_position, v_in_schema, v_named, v_table, v_sync, v_label, v_all, v_keys, v_index);
    SET v_schema = v_in_schema, v_name = v_named;
    SET @mq_sql = CONCAT('SELECT EXISTS (SELECT 1 FROM ', v_table, ' AS t ', v_index, ' WHERE t.', v_sync, ' IS NULL) INTO @mq_n');
    PREPARE mq_statement FROM @mq_sql;
    EXECUTE mq_statement;
    IF @mq_n THEN
        -- The counter before the rows: whoever waits here holds no row that others want.
        CALL mq_lock_feed(p_feed, v_last);
        -- MariaDB 10.11 skips no locked row in what an UPDATE joins: the keys are locked first and go into it as a list of
        -- texts. Of each type: the text of a value, its type in the list, and how the column compares with it.
        SELECT GROUP_CONCAT('t.', k.quoted, ' AS k', k.n), GROUP_CONCAT('r.k', k.n ORDER BY k.n),
            GROUP_CONCAT(k.text ORDER BY k.n SEPARATOR ', '','', '),
            GROUP_CONCAT('k', k.n, ' ', k.type, ' PATH ''$[', k.n - 1, ']''' SEPARATOR ', '),
            GROUP_CONCAT('t.', k.quoted, ' = ', k.value SEPARATOR ' AND ')
        INTO v_picked, v_order, v_texts, v_columns, v_equal
        FROM (
            SELECT j.n, j.quoted,
                CASE
                    WHEN c.data_type IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob')
                        THEN CONCAT('''"'', HEX(r.k', j.n, '), ''"''')
                    WHEN c.data_type IN ('float', 'bit') THEN CONCAT('''"'', CONVERT(r.k', j.n, ' + 0e0 USING utf8mb4), ''"''')
                    ELSE CONCAT('JSON_QUOTE(CONVERT(r.k', j.n, ' USING utf8mb4))')
                END AS text,
                CASE
                    WHEN c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') AND c.column_type LIKE '%unsigned%'
                        OR c.data_type = 'bit' THEN 'bigint unsigned'
                    WHEN c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'year') THEN 'bigint'
                    WHEN c.data_type = 'decimal' THEN CONCAT('decimal(', c.numeric_precision, ',', c.numeric_scale, ')')
                    WHEN c.data_type IN ('float', 'double') THEN 'double'
                    ELSE 'text CHARACTER SET utf8mb4'
                END AS type,
                CASE
                    WHEN c.data_type IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob')
                        THEN CONCAT('UNHEX(c.k', j.n, ')')
                    WHEN c.character_set_name IS NOT NULL
                        THEN CONCAT('CONVERT(c.k', j.n, ' USING ', c.character_set_name, ') COLLATE ', c.collation_name)
                    ELSE CONCAT('c.k', j.n)
                END AS value
            FROM JSON_TABLE(v_keys, '$[*]' COLUMNS (
                n int PATH '$.n', name varchar(64) CHARACTER SET utf8mb4 PATH '$.name',
                quoted varchar(200) CHARACTER SET utf8mb4 PATH '$.quoted'
            )) AS j
            JOIN information_schema.columns AS c
                ON CAST(j.name AS binary) = CAST(CONVERT(c.column_name USING utf8mb4) AS binary)
            WHERE c.table_schema = v_schema AND c.table_name = v_name
        ) AS k;
        SET @mq_sql = CONCAT('SELECT COUNT(*), CONCAT(''['', GROUP_CONCAT(''['', ', v_texts, ', '']'' ORDER BY ', v_order,
            '), '']'') INTO @mq_n, @mq_list FROM (SELECT ', v_picked, ' FROM ', v_table, ' AS t ', v_index, ' WHERE t.', v_sync,
            ' IS NULL LIMIT ', COALESCE(p_size, 500), ' FOR UPDATE SKIP LOCKED) AS r');
        PREPARE mq_statement FROM @mq_sql;
        EXECUTE mq_statement;
        SET v_count = @mq_n;
    END IF;
    IF v_count > 0 THEN
        -- Columns that an UPDATE sets by itself keep what the writer's has set.
        SELECT COALESCE(GROUP_CONCAT(', t.`', REPLACE(c.column_name, '`', '``'), '` = t.`', REPLACE(c.column_name, '`', '``'), '`'
            SEPARATOR ''), '')
        INTO v_kept
        FROM information_schema.columns AS c
        WHERE c.table_schema = v_schema AND c.table_name = v_name
            AND c.extra LIKE '%on update%';
        -- By the unique index: a scan would wait for rows that others have locked.
        SELECT CONCAT('FORCE INDEX (`', REPLACE(u.index_name, '`', '``'), '`)') INTO v_unique
        FROM (
            SELECT s.index_name
            FROM information_schema.statistics AS s
            LEFT JOIN JSON_TABLE(v_keys, '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$.name')) AS j
                ON CAST(j.name AS binary) = CAST(CONVERT(s.column_name USING utf8mb4) AS binary)
            WHERE s.table_schema = v_schema AND s.table_name = v_name
                AND s.non_unique = 0 /*M! AND s.ignored = 'NO' */ /*!80000 AND s.is_visible = 'YES' */
            GROUP BY s.index_name
            HAVING COUNT(*) = COUNT(j.name) AND SUM(s.nullable = 'YES') = 0
            ORDER BY s.index_name <> 'PRIMARY', s.index_name
            LIMIT 1
        ) AS u;
        SET @mq_sql = CONCAT('UPDATE JSON_TABLE(@mq_list, ''$[*]'' COLUMNS (number FOR ORDINALITY, ', v_columns,
            ')) AS c STRAIGHT_JOIN ', v_table, ' AS t ', COALESCE(v_unique, ''), ' ON ', v_equal,
            ' SET t.', v_sync, ' = ', v_last, ' + c.number', v_kept);
        PREPARE mq_statement FROM @mq_sql;
        EXECUTE mq_statement;
        SET @mq_sql = CONCAT('SELECT COUNT(*) INTO @mq_n FROM ', v_table, ' AS t ', v_index, ' WHERE t.', v_sync, ' > ', v_last,
            ' AND t.', v_sync, ' <= ', v_last + v_count);
        PREPARE mq_statement FROM @mq_sql;
        EXECUTE mq_statement;
        IF @mq_n < v_count THEN
            CALL mq_raise_error('unsuitable_table', CONCAT('a trigger of ', LEFT(v_label, 40), ' keeps rows from being numbered'));
        END IF;
        CALL mq_count_feed(p_feed, v_count);
    END IF;
    DEALLOCATE PREPARE mq_statement;
    SET @mq_sql = NULL, @mq_n = NULL, @mq_list = NULL;
    CALL mq_end_call(v_own);
    SELECT v_count AS count;
END//

DELIMITER ;
