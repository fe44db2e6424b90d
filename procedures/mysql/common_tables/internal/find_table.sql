-- find_table: find a user's table by the name in an argument.
-- Arguments:   p_argument (its name in the contract), p_table (table or database.table, as written in SQL; the default is
--              the queue's database)
-- Returns:     p_schema ('': the queue's own database), p_name, p_quoted (for SQL), p_label (for error texts: the name,
--              with the database unless it is the queue's)
-- Transaction: reads only the catalog, where callers see the tables on which they have a right

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_find_table(
    IN p_argument varchar(200) CHARACTER SET utf8mb4, IN p_table longtext CHARACTER SET utf8mb4,
    OUT p_schema varchar(200) CHARACTER SET utf8mb4, OUT p_name varchar(200) CHARACTER SET utf8mb4,
    OUT p_quoted longtext CHARACTER SET utf8mb4, OUT p_label longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_names longtext CHARACTER SET utf8mb4;
    -- In the catalog's character set: with another one the server would read the whole catalog.
    DECLARE v_in_schema, v_named varchar(200) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci;
    DECLARE v_schema, v_given, v_type, v_engine varchar(200) CHARACTER SET utf8mb4;
    CALL imq_split_names(p_argument, p_table, '.', 2, v_names);
    SET v_schema = IF(JSON_LENGTH(v_names) = 2, JSON_UNQUOTE(JSON_EXTRACT(v_names, '$[0]')), DATABASE());
    SET v_given = JSON_UNQUOTE(JSON_EXTRACT(v_names, CONCAT('$[', JSON_LENGTH(v_names) - 1, ']')));
    SET v_in_schema = CONVERT(v_schema USING utf8mb3), v_named = CONVERT(v_given USING utf8mb3);
    SELECT t.table_schema, t.table_name, t.table_type, t.engine INTO p_schema, p_name, v_type, v_engine
    FROM information_schema.tables AS t
    WHERE t.table_schema = v_in_schema AND t.table_name = v_named
        -- MariaDB's catalog compares names case-insensitively even where the names themselves are case-sensitive.
        AND (@@lower_case_table_names > 0
            OR CAST(t.table_schema AS binary) = CAST(v_schema AS binary)
            AND CAST(t.table_name AS binary) = CAST(v_given AS binary))
    LIMIT 1;
    SET p_schema = COALESCE(p_schema, v_schema), p_name = COALESCE(p_name, v_given);
    SET p_quoted = CONCAT('`', REPLACE(p_schema, '`', '``'), '`.`', REPLACE(p_name, '`', '``'), '`');
    IF p_schema = DATABASE() THEN
        SET p_schema = '';
    END IF;
    SET p_label = CONCAT(p_schema, IF(p_schema = '', '', '.'), p_name);
    -- Refused in every database: other queues use these names too.
    IF LOWER(v_schema) IN ('mysql', 'information_schema', 'performance_schema', 'sys') OR LOWER(v_given) LIKE 'mq\_%'
    THEN
        CALL imq_raise_error('unsuitable_table', CONCAT(LEFT(p_label, 60), ' is a table of the queue or of the system'));
    ELSEIF v_type IS NULL THEN
        CALL imq_raise_error('not_found', CONCAT(p_argument, ': no table ', LEFT(p_label, 40),
            ', or no right to see it: GRANT SELECT ON it TO ', CURRENT_USER()));
    ELSEIF v_type NOT IN ('BASE TABLE', 'SYSTEM VERSIONED') THEN
        CALL imq_raise_error('unsuitable_table', CONCAT(LEFT(p_label, 60), ' is a view or a temporary table'));
    ELSEIF v_engine IS NULL OR v_engine <> 'InnoDB' THEN
        CALL imq_raise_error('unsuitable_table', CONCAT(LEFT(p_label, 60), ' must have ENGINE = InnoDB'));
    END IF;
END
