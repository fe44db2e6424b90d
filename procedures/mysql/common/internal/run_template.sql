-- run_template: execute a statement made of a template with the rights of the caller.
-- Arguments:   p_places (a JSON object of texts), p_template: in it {name} stands for the text of that name
-- Returns:     p_count: rows changed; a SELECT ... INTO @mq_found puts its value there
-- Errors:      the statement's
-- Transaction: joins the caller's
-- Example:     CALL mq_run_template('{"table":"`stock`"}', 'SELECT COUNT(*) INTO @mq_n FROM {table} AS t', v_count);
--
-- Names of tables and columns may contain any character but NUL, which stands for their braces while the places are filled:
-- so a column called {table} is nothing but a column.

DROP PROCEDURE IF EXISTS mq_run_template;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_run_template(
    IN p_places longtext CHARACTER SET utf8mb4,
    IN p_template longtext CHARACTER SET utf8mb4,
    OUT p_count bigint
)
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    DECLARE v_statement longtext CHARACTER SET utf8mb4 DEFAULT p_template;
    DECLARE v_names longtext CHARACTER SET utf8mb4 DEFAULT JSON_KEYS(p_places);
    DECLARE v_name varchar(40) CHARACTER SET utf8mb4;
    DECLARE v_n int DEFAULT 0;
    WHILE v_n < JSON_LENGTH(v_names) DO
        SET v_name = JSON_UNQUOTE(JSON_EXTRACT(v_names, CONCAT('$[', v_n, ']'))), v_n = v_n + 1;
        IF LOCATE(CONCAT('{', v_name, '}'), v_statement) > 0 THEN
            SET v_statement = REPLACE(v_statement, CONCAT('{', v_name, '}'),
                REPLACE(JSON_UNQUOTE(JSON_EXTRACT(p_places, CONCAT('$.', v_name))), '{', CHAR(0 USING utf8mb4)));
        END IF;
    END WHILE;
    CALL mq_run(REPLACE(v_statement, CHAR(0 USING utf8mb4), '{'), p_count);
END//

DELIMITER ;
