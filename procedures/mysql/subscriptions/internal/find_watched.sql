-- find_watched: find the watched table that an argument names.
-- Arguments:   p_table (as SQL names it; a dropped table: as messages name it)
-- Returns:     p_label; p_quoted (for SQL; NULL when the table was dropped)
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: reads only
-- Example:     CALL mq_find_watched('stock', v_label, v_quoted);

DROP PROCEDURE IF EXISTS mq_find_watched;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_find_watched(
    IN p_table longtext CHARACTER SET utf8mb4,
    OUT p_label longtext CHARACTER SET utf8mb4,
    OUT p_quoted longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_message varchar(128) CHARACTER SET utf8mb4;
    DECLARE v_found tinyint;
    DECLARE v_conditions int DEFAULT 1;
    BEGIN
        DECLARE CONTINUE HANDLER FOR SQLSTATE '45000'
        BEGIN
            -- On MySQL read the last condition: loading a routine for the first time may add warnings before the error. On
            -- MariaDB read the first: the server adds the place of the error after it.
            /*!80000 GET DIAGNOSTICS v_conditions = NUMBER; */
            GET DIAGNOSTICS CONDITION v_conditions v_message = MESSAGE_TEXT;
            SET p_quoted = NULL;
        END;
        CALL mq_find_table('table', COALESCE(p_table, ''), v_schema, v_name, p_quoted, p_label);
    END;
    IF v_message IS NOT NULL THEN
        SET p_label = COALESCE(p_table, '');
    END IF;
    SELECT EXISTS (SELECT * FROM mq_watched WHERE label = p_label) INTO v_found;
    IF NOT v_found AND v_message LIKE 'invalid\_argument: %' THEN
        CALL mq_raise_error('invalid_argument', SUBSTRING(v_message, 19));
    ELSEIF NOT v_found THEN
        CALL mq_raise_error('not_found', CONCAT('table: ', LEFT(p_label, 60), ' is not watched: call watch_table first'));
    END IF;
END//

DELIMITER ;
