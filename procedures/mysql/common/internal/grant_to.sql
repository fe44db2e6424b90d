-- grant_to: grant roles the call of procedures and the reading of tables and views; the names are separated by blanks.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_grant_to(
    IN p_roles varchar(200) CHARACTER SET utf8mb4, IN p_calls text CHARACTER SET utf8mb4,
    IN p_reads text CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_right text CHARACTER SET utf8mb4;
    DECLARE v_end tinyint DEFAULT 0;
    DECLARE c_rights CURSOR FOR
        SELECT CONCAT('EXECUTE ON PROCEDURE ', COALESCE(r.routine_name, CONCAT('mq_', j.name)))
        FROM JSON_TABLE(CONCAT('["', REGEXP_REPLACE(p_calls, '[[:space:]]+', '","'), '"]'),
            '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$')) AS j
        LEFT JOIN information_schema.routines AS r
            ON r.routine_schema = DATABASE() AND r.routine_name IN (CONCAT('mq_', j.name), CONCAT('imq_', j.name))
        WHERE j.name <> ''
        UNION ALL
        SELECT CONCAT('SELECT ON mq_', j.name)
        FROM JSON_TABLE(CONCAT('["', REGEXP_REPLACE(p_reads, '[[:space:]]+', '","'), '"]'),
            '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$')) AS j
        WHERE j.name <> '';
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = 1;
    OPEN c_rights;
    FETCH c_rights INTO v_right;
    WHILE NOT v_end DO
        SET @mq_statement = CONCAT('GRANT ', v_right, ' TO ', REPLACE(p_roles, ' ', ', '));
        PREPARE mq_statement FROM @mq_statement;
        EXECUTE mq_statement;
        DEALLOCATE PREPARE mq_statement;
        FETCH c_rights INTO v_right;
    END WHILE;
    CLOSE c_rights;
    SET @mq_statement = NULL;
END
