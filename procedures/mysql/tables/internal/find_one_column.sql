-- find_one_column: the one column that an argument names.
-- Arguments:   p_argument (its name in the contract), p_table (the table, quoted by imq_find_table), p_column (as written
--              in SQL; NULL: none)
-- Returns:     p_name: its name as in the catalog; NULL: the argument is NULL

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_find_one_column(
    IN p_argument varchar(200) CHARACTER SET utf8mb4, IN p_table longtext CHARACTER SET utf8mb4,
    IN p_column longtext CHARACTER SET utf8mb4, OUT p_name varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_found longtext CHARACTER SET utf8mb4;
    IF p_column IS NOT NULL THEN
        CALL imq_find_columns(p_argument, p_table, p_column, v_found);
        IF JSON_LENGTH(v_found) <> 1 THEN
            CALL imq_raise_error('invalid_argument', CONCAT(p_argument, ': must name exactly one column'));
        END IF;
        SET p_name = JSON_UNQUOTE(JSON_EXTRACT(v_found, '$[0].name'));
    END IF;
END
