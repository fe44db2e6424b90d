-- require_rights: refuse a caller without these rights on a table.
-- Arguments:   p_quoted (the table, for SQL), p_column (the column to change; NULL: none), p_delete (1: rows are deleted)
-- Transaction: runs the statements themselves, on no rows

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_rights(
    IN p_quoted longtext CHARACTER SET utf8mb4, IN p_column varchar(200) CHARACTER SET utf8mb4, IN p_delete tinyint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_rights varchar(30) CHARACTER SET utf8mb4
        DEFAULT CONCAT('SELECT', IF(p_column IS NULL, '', ', UPDATE'), IF(p_delete, ', DELETE', ''));
    DECLARE v_places longtext CHARACTER SET utf8mb4
        DEFAULT JSON_OBJECT('table', p_quoted, 'column', CONCAT('`', REPLACE(p_column, '`', '``'), '`'));
    DECLARE v_nothing bigint;
    DECLARE EXIT HANDLER FOR 1142, 1143
        CALL imq_raise_error('unsuitable_table', CONCAT('GRANT ', v_rights, ' ON ', LEFT(p_quoted, 50), ' TO ', CURRENT_USER()));
    CALL imq_run_template(v_places, CONCAT('SELECT COUNT(*) INTO @mq_found FROM (SELECT * FROM {table} WHERE FALSE',
        IF(v_rights = 'SELECT', '', ' FOR UPDATE'), ') AS t'), v_nothing);
    IF p_column IS NOT NULL THEN
        CALL imq_run_template(v_places, 'UPDATE {table} SET {column} = {column} WHERE FALSE', v_nothing);
    END IF;
    IF p_delete THEN
        CALL imq_run_template(v_places, 'DELETE FROM {table} WHERE FALSE', v_nothing);
    END IF;
END
