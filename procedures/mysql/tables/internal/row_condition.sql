-- row_condition: the condition that a row without a key fulfils when it equals one that was claimed.
-- Arguments:   p_shape (mq_polled_shape), p_ident
-- Returns:     p_condition: over the table's own name, not over an alias
-- Errors:      none
-- Transaction: reads nothing
-- Example:     CALL mq_row_condition(v_shape, '17,4142', v_condition);

DROP PROCEDURE IF EXISTS mq_row_condition;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_row_condition(
    IN p_shape longtext CHARACTER SET utf8mb4,
    IN p_ident longtext CHARACTER SET utf8mb4,
    OUT p_condition longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    DECLARE v_columns, v_quoted, v_bare, v_literal, v_name, v_piece longtext CHARACTER SET utf8mb4;
    DECLARE v_count int;
    DECLARE v_k int DEFAULT 0;
    SELECT s.columns_, s.quoted, s.bare INTO v_columns, v_quoted, v_bare
    FROM JSON_TABLE(p_shape, '$' COLUMNS (columns_ longtext CHARACTER SET utf8mb4 PATH '$.columns',
        quoted longtext CHARACTER SET utf8mb4 PATH '$.quoted', bare longtext CHARACTER SET utf8mb4 PATH '$.bare')) AS s;
    SET v_count = JSON_LENGTH(v_columns), p_condition = '';
    WHILE v_k < v_count DO
        SET v_name = JSON_UNQUOTE(JSON_EXTRACT(v_columns, CONCAT('$[', v_k, '][0]'))),
            v_piece = SUBSTRING_INDEX(SUBSTRING_INDEX(p_ident, ',', v_k + 1), ',', -1);
        CALL mq_key_literals(JSON_ARRAY(JSON_ARRAY('', JSON_UNQUOTE(JSON_EXTRACT(v_columns, CONCAT('$[', v_k, '][1]'))))),
            JSON_ARRAY(JSON_ARRAY(0, v_piece)), v_literal);
        SET p_condition = CONCAT(p_condition, v_quoted, '.`', REPLACE(v_name, '`', '``'), '` <=> ', v_literal, ' AND '),
            v_k = v_k + 1;
    END WHILE;
    -- The collation may take for equal what is not.
    SET p_condition = CONCAT(p_condition, 'SHA2(', v_bare, ', 256) = ''', SHA2(p_ident, 256), '''');
END//

DELIMITER ;
