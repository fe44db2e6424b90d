-- list_polling_tables: list the polling tables, their settings, and how many rows are claimed, wait for a retry or are dead.
-- Arguments:   p_name (1 to 200 characters; NULL: all)
-- Returns:     one row per polling table, by name; active, waiting and dead are counted up to 10,000
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks; does not read the polling tables themselves
-- Example:     CALL mq_list_polling_tables(NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_polling_tables(IN p_name longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_active, v_waiting, v_dead bigint;
    DECLARE v_counts longtext CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_end tinyint DEFAULT 0;
    DECLARE c_tables CURSOR FOR SELECT p.name FROM mq_polled AS p WHERE p_name IS NULL OR p.name = p_name;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = 1;
    CALL imq_require_name('name', p_name, 1);
    OPEN c_tables;
    FETCH c_tables INTO v_name;
    WHILE NOT v_end DO
        CALL imq_count_polled(v_name, 'A', v_active);
        CALL imq_count_polled(v_name, 'N', v_waiting);
        CALL imq_count_polled(v_name, 'E', v_dead);
        SET v_counts = CONCAT(v_counts, ',[', JSON_QUOTE(v_name), ',', v_active, ',', v_waiting, ',', v_dead, ']');
        FETCH c_tables INTO v_name;
    END WHILE;
    CLOSE c_tables;
    SELECT p.name, CONCAT(p.table_schema, IF(p.table_schema = '', '', '.'), p.table_name) AS table_name, k.list AS key_columns,
        p.order_column, p.status_column, p.ready_value, p.active_value, p.done_value, p.error_value, p.on_complete, p.late_seconds,
        p.equal_rows, p.max_attempts, n.active, n.waiting, n.dead
    FROM JSON_TABLE(CONCAT('[', SUBSTRING(v_counts, 2), ']'), '$[*]' COLUMNS (
        name varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[0]',
        active bigint PATH '$[1]', waiting bigint PATH '$[2]', dead bigint PATH '$[3]')) AS n
    STRAIGHT_JOIN mq_polled AS p FORCE INDEX (PRIMARY) ON p.name = n.name
    LEFT JOIN (
        SELECT q.name, GROUP_CONCAT(IF(c.name REGEXP '^[0-9a-zA-Z_$]+$', c.name, CONCAT('`', REPLACE(c.name, '`', '``'), '`'))
            ORDER BY c.n SEPARATOR ', ') AS list
        FROM mq_polled AS q
        CROSS JOIN JSON_TABLE(q.key_columns, '$[*]' COLUMNS (n FOR ORDINALITY,
            name varchar(64) CHARACTER SET utf8mb4 PATH '$')) AS c
        GROUP BY q.name
    ) AS k ON k.name = p.name
    ORDER BY p.name;
END
