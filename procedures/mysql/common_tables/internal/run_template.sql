-- run_template: fill a template and execute the statement with the rights of the caller.
-- Arguments:   p_places (a JSON object: the text for each name), p_template ({name} is replaced by the text of that name)
-- Returns:     p_count: rows changed; a SELECT ... INTO @mq_found stores its value in that variable
--
-- The template is scanned once, and inserted texts are not scanned again: so a column may be called {table}. A caller
-- that inserts names into the template itself replaces their opening braces by NUL, which no name contains.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_run_template(
    IN p_places longtext CHARACTER SET utf8mb4, IN p_template longtext CHARACTER SET utf8mb4, OUT p_count bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_places json DEFAULT p_places;
    DECLARE v_statement longtext CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_rest longtext CHARACTER SET utf8mb4 DEFAULT p_template;
    DECLARE v_at int DEFAULT LOCATE('{', p_template);
    DECLARE v_end int;
    WHILE v_at > 0 DO
        SET v_end = LOCATE('}', v_rest, v_at), v_statement = CONCAT(v_statement, LEFT(v_rest, v_at - 1),
                JSON_UNQUOTE(JSON_EXTRACT(v_places, CONCAT('$.', SUBSTRING(v_rest, v_at + 1, v_end - v_at - 1))))),
            v_rest = SUBSTRING(v_rest, v_end + 1), v_at = LOCATE('{', v_rest);
    END WHILE;
    -- Like imq_run, but without another call.
    SET @mq_statement = REPLACE(CONCAT(v_statement, v_rest), CHAR(0 USING utf8mb4), '{');
    PREPARE mq_statement FROM @mq_statement;
    EXECUTE mq_statement;
    SET p_count = ROW_COUNT();
    DEALLOCATE PREPARE mq_statement;
    SET @mq_statement = NULL;
END
