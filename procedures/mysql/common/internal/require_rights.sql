-- require_rights: refuse a caller without these rights on a table.
-- Arguments:   p_quoted (the table, for SQL), p_status (the column to change; NULL: none), p_delete (1: rows are deleted)
-- Returns:     nothing
-- Errors:      50006 unsuitable_table, with the GRANT to run
-- Transaction: the statements themselves are tried, on no row
-- Example:     CALL mq_require_rights('`shop`.`orders`', 'status', 0);

DROP PROCEDURE IF EXISTS mq_require_rights;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_require_rights(
    IN p_quoted longtext CHARACTER SET utf8mb4,
    IN p_status varchar(200) CHARACTER SET utf8mb4,
    IN p_delete tinyint
)
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    DECLARE v_rights varchar(30) CHARACTER SET utf8mb4
        DEFAULT CONCAT('SELECT', IF(p_status IS NULL, '', ', UPDATE'), IF(p_delete, ', DELETE', ''));
    DECLARE v_status varchar(200) CHARACTER SET utf8mb4 DEFAULT CONCAT('`', REPLACE(p_status, '`', '``'), '`');
    DECLARE v_nothing bigint;
    DECLARE EXIT HANDLER FOR 1142, 1143
        CALL mq_raise_error('unsuitable_table', CONCAT('GRANT ', v_rights, ' ON ', LEFT(p_quoted, 50), ' TO ', CURRENT_USER()));
    CALL mq_run(CONCAT('SELECT COUNT(*) INTO @mq_found FROM (SELECT * FROM ', p_quoted, ' WHERE FALSE',
        IF(v_rights = 'SELECT', '', ' FOR UPDATE'), ') AS t'), v_nothing);
    IF p_status IS NOT NULL THEN
        CALL mq_run(CONCAT('UPDATE ', p_quoted, ' SET ', v_status, ' = ', v_status, ' WHERE FALSE'), v_nothing);
    END IF;
    IF p_delete THEN
        CALL mq_run(CONCAT('DELETE FROM ', p_quoted, ' WHERE FALSE'), v_nothing);
    END IF;
END//

DELIMITER ;
