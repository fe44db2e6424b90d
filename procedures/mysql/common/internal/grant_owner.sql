-- grant_owner: grant mq_owner rights, as far as the installing account may.
-- Arguments:   p_rights (a JSON array of texts such as 'SELECT ON t'; NULL: none)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_grant_owner(IN p_rights longtext CHARACTER SET utf8mb4)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE i int DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR 1044, 1045, 1142, 1143, 1227 BEGIN END;
    WHILE i < JSON_LENGTH(p_rights) DO
        SET @mq_statement = CONCAT('GRANT ', JSON_UNQUOTE(JSON_EXTRACT(p_rights, CONCAT('$[', i, ']'))),
            ' TO ''mq_owner''@''localhost'''), i = i + 1;
        PREPARE mq_statement FROM @mq_statement;
        EXECUTE mq_statement;
        DEALLOCATE PREPARE mq_statement;
    END WHILE;
    SET @mq_statement = NULL;
END
