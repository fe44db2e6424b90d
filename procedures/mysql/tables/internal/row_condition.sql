-- row_condition: return the condition that finds a row equal to the one that was claimed.
-- Arguments:   p_shape (from imq_polled_shape), p_ident
-- Returns:     p_condition: a template for imq_run_template, over the table's own name without an alias

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_row_condition(
    IN p_shape longtext CHARACTER SET utf8mb4, IN p_ident longtext CHARACTER SET utf8mb4,
    OUT p_condition longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_columns, v_name, v_literal longtext CHARACTER SET utf8mb4;
    DECLARE v_class varchar(1) CHARACTER SET utf8mb4;
    DECLARE v_k int DEFAULT 0;
    SET v_columns = JSON_UNQUOTE(JSON_EXTRACT(p_shape, '$.columns')), p_condition = '';
    WHILE v_k < JSON_LENGTH(v_columns) DO
        SET v_name = JSON_UNQUOTE(JSON_EXTRACT(v_columns, CONCAT('$[', v_k, '][0]'))),
            v_class = JSON_UNQUOTE(JSON_EXTRACT(v_columns, CONCAT('$[', v_k, '][1]'))), v_k = v_k + 1;
        CALL imq_key_literals(JSON_ARRAY(JSON_ARRAY('', v_class)),
            JSON_ARRAY(JSON_ARRAY(0, SUBSTRING_INDEX(SUBSTRING_INDEX(p_ident, ',', v_k), ',', -1))), v_literal);
        SET p_condition = CONCAT(p_condition, '{table}.`', REPLACE(REPLACE(v_name, '`', '``'), '{', CHAR(0 USING utf8mb4)),
            '` <=> ', v_literal, ' AND ');
    END WHILE;
    -- The hash: to the collation different values may be equal.
    SET p_condition = CONCAT(p_condition, 'SHA2({bare}, 256) = ''', SHA2(p_ident, 256), '''');
END
