-- find_watched: find the watched table that an argument names, for a caller with these rights on it.
-- Arguments:   p_table (as SQL names it; a dropped table: as messages name it), p_rights (a list: Select, Trigger; NULL:
--              none)
-- Returns:     p_label; p_quoted (for SQL; NULL when the table was dropped)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_find_watched(
    IN p_table longtext CHARACTER SET utf8mb4, IN p_rights varchar(40) CHARACTER SET utf8mb4,
    OUT p_label longtext CHARACTER SET utf8mb4, OUT p_quoted longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_message varchar(128) CHARACTER SET utf8mb4;
    DECLARE v_of_schema, v_of_name varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci;
    DECLARE v_found tinyint;
    DECLARE v_dot int DEFAULT 0;
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
        CALL imq_find_table('table', COALESCE(p_table, ''), v_schema, v_name, p_quoted, p_label);
    END;
    IF v_message IS NOT NULL THEN
        SET p_label = COALESCE(p_table, '');
    END IF;
    SELECT EXISTS (SELECT * FROM mq_watched WHERE label = p_label) INTO v_found;
    IF NOT v_found AND v_message LIKE 'invalid\_argument: %' THEN
        CALL imq_raise_error('invalid_argument', SUBSTRING(v_message, 19));
    ELSEIF NOT v_found THEN
        CALL imq_raise_error('not_found', CONCAT('table: ', LEFT(p_label, 60), ' is not watched: call watch_table first'));
    END IF;
    -- The rights are those on the table with this label, however the argument is written. add_watched refuses names with
    -- dots, so a label means one table.
    SET p_quoted = NULL, v_dot = LOCATE('.', p_label), v_schema = IF(v_dot = 0, DATABASE(), LEFT(p_label, v_dot - 1)),
        v_name = SUBSTRING(p_label, v_dot + 1);
    SET v_of_schema = CONVERT(v_schema USING utf8mb3), v_of_name = CONVERT(v_name USING utf8mb3);
    SELECT MAX(CONCAT('`', REPLACE(v_schema, '`', '``'), '`.`', REPLACE(v_name, '`', '``'), '`')) INTO p_quoted
    FROM information_schema.tables AS t
    WHERE t.table_schema = v_of_schema AND t.table_name = v_of_name
        AND (@@lower_case_table_names > 0
            OR CAST(t.table_schema AS binary) = CAST(v_schema AS binary)
            AND CAST(t.table_name AS binary) = CAST(v_name AS binary));
    IF p_quoted IS NOT NULL AND p_rights IS NOT NULL THEN
        CALL imq_require_use(v_schema, v_name, p_rights,
            LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1));
    END IF;
END
