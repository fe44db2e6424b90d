-- require_status: refuse status values that the column cannot hold or distinguish.
-- Arguments:   p_schema, p_table, p_column (names as in the catalog), p_ready, p_active, p_done, p_error, p_delete (1:
--              delete done rows)
--
-- A CHECK is not evaluated here: its text is the table owner's, and would be executed. The table refuses such rows when they
-- are written.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_status(
    IN p_schema varchar(200) CHARACTER SET utf8mb4, IN p_table varchar(200) CHARACTER SET utf8mb4,
    IN p_column varchar(200) CHARACTER SET utf8mb4, IN p_ready longtext CHARACTER SET utf8mb4,
    IN p_active longtext CHARACTER SET utf8mb4, IN p_done longtext CHARACTER SET utf8mb4,
    IN p_error longtext CHARACTER SET utf8mb4, IN p_delete tinyint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_kind, v_charset, v_collation, v_name, v_type, v_value, v_other, v_literal longtext CHARACTER SET utf8mb4;
    DECLARE v_length, v_count bigint;
    DECLARE v_i int DEFAULT 1;
    DECLARE v_j, v_bits int;
    DECLARE v_nullable, v_fits tinyint;
    SELECT MAX(c.data_type), MAX(c.column_type), MAX(c.character_maximum_length), MAX(c.is_nullable = 'YES'),
        MAX(c.character_set_name), MAX(c.collation_name)
    INTO v_kind, v_type, v_length, v_nullable, v_charset, v_collation
    FROM information_schema.columns AS c
    WHERE c.table_schema = p_schema AND c.table_name = p_table AND c.column_name = p_column;
    IF p_error IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'error_value: must not be NULL with a status_column');
    ELSEIF p_done IS NULL AND NOT p_delete THEN
        CALL imq_raise_error('invalid_argument', 'done_value: must not be NULL with a status_column and keep');
    ELSEIF p_ready IS NULL AND NOT v_nullable THEN
        CALL imq_raise_error('invalid_argument',
            CONCAT('ready_value: must not be NULL, because ', LEFT(p_column, 40), ' is NOT NULL'));
    END IF;
    SET v_bits = CASE v_kind WHEN 'tinyint' THEN 8 WHEN 'smallint' THEN 16 WHEN 'mediumint' THEN 24 WHEN 'int' THEN 32 ELSE 64 END;
    WHILE v_i <= 4 DO
        SET v_value = ELT(v_i, p_ready, p_active, p_done, p_error),
            v_name = ELT(v_i, 'ready_value', 'active_value', 'done_value', 'error_value'), v_j = 1;
        IF v_value IS NOT NULL THEN
            SET v_fits = CASE
                WHEN v_kind IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') THEN v_value REGEXP '^-?[0-9]{1,18}$'
                    AND CAST(IF(v_value REGEXP '^-?[0-9]{1,18}$', v_value, '0') AS decimal(20)) BETWEEN
                        IF(v_type LIKE '%unsigned%', 0, -POW(2, v_bits - 1))
                        AND POW(2, v_bits - IF(v_type LIKE '%unsigned%', 0, 1)) - 1
                WHEN v_kind IN ('decimal', 'float', 'double', 'year', 'bit') THEN v_value REGEXP '^-?[0-9]+([.][0-9]+)?$'
                WHEN v_kind = 'enum' THEN LOCATE(CONCAT('''', REPLACE(v_value, '''', ''''''), ''''), v_type) > 0
                ELSE COALESCE(CHAR_LENGTH(v_value) <= v_length, TRUE)
            END;
            SET v_literal = CONCAT('_utf8mb4 x''', HEX(v_value), ''''),
                v_literal = IF(v_charset IS NULL, CONCAT(v_literal, ' + 0'),
                    CONCAT('CONVERT(', v_literal, ' USING ', v_charset, ') COLLATE ', v_collation));
            IF NOT v_fits THEN
                CALL imq_raise_error('invalid_argument', CONCAT(v_name, ': ', LEFT(p_column, 40), ' cannot hold "',
                    LEFT(v_value, 30), '"'));
            END IF;
            WHILE v_j < v_i DO
                SET v_other = ELT(v_j, p_ready, p_active, p_done, p_error);
                IF v_other IS NOT NULL THEN
                    CALL imq_run(CONCAT('SELECT ', v_literal, ' = _utf8mb4 x''', HEX(v_other), ''' INTO @mq_found'), v_count);
                    IF @mq_found THEN
                        CALL imq_raise_error('invalid_argument', CONCAT(v_name, ': must differ from ',
                            ELT(v_j, 'ready_value', 'active_value', 'done_value')));
                    END IF;
                END IF;
                SET v_j = v_j + 1;
            END WHILE;
        END IF;
        SET v_i = v_i + 1;
    END WHILE;
    SET @mq_found = NULL;
END
