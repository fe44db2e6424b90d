-- add_watched: store a watched table, for a caller with the right to create triggers on it.
-- Arguments:   p_schema, p_table (names as in the catalog), p_label

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_add_watched(
    IN p_schema varchar(64) CHARACTER SET utf8mb4, IN p_table varchar(64) CHARACTER SET utf8mb4,
    IN p_label varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_owner varchar(40) CHARACTER SET utf8mb4 DEFAULT '''mq_owner''@''localhost''';
    DECLARE v_rights int;
    DECLARE v_schema varchar(65) CHARACTER SET utf8mb4 DEFAULT IF(p_schema = DATABASE(), '', CONCAT(p_schema, '.'));
    IF CAST(p_label AS binary) <> CAST(CONCAT(v_schema, p_table) AS binary) THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('the table is ', LEFT(v_schema, 30), LEFT(p_table, 50)));
    ELSEIF LOCATE('.', p_table) > 0 OR v_schema LIKE '%.%.' THEN
        CALL imq_raise_error('unsuitable_table', CONCAT(LEFT(p_label, 30), ' has a dot in its name or database: messages could not '
            'distinguish it from another table'));
    END IF;
    CALL imq_require_use(p_schema, p_table, 'Select,Trigger',
        LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1));
    SELECT COUNT(DISTINCT r.privilege_type) INTO v_rights
    FROM (
        SELECT privilege_type FROM information_schema.user_privileges WHERE grantee = c_owner
        UNION ALL
        SELECT privilege_type FROM information_schema.schema_privileges WHERE grantee = c_owner AND p_schema LIKE table_schema
        UNION ALL
        SELECT privilege_type FROM information_schema.table_privileges
        WHERE grantee = c_owner AND table_schema = p_schema AND table_name = p_table
    ) AS r
    WHERE r.privilege_type IN ('SELECT', 'TRIGGER');
    IF v_rights < 2 THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('GRANT SELECT, TRIGGER ON `', LEFT(p_schema, 25), '`.`',
            LEFT(p_table, 25), '` TO ', c_owner));
    END IF;
    INSERT INTO mq_watched (label) VALUES (p_label) ON DUPLICATE KEY UPDATE mq_watched.label = mq_watched.label;
END
