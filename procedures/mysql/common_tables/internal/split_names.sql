-- split_names: split an argument into names, plain or in double quotes or backticks.
-- Arguments:   p_argument (its name in the contract), p_names, p_separator ('.' or ','), p_most (the most names allowed)
-- Returns:     p_list: a JSON array of the names

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_split_names(
    IN p_argument varchar(200) CHARACTER SET utf8mb4, IN p_names longtext CHARACTER SET utf8mb4,
    IN p_separator varchar(1) CHARACTER SET ascii, IN p_most int, OUT p_list longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_length int DEFAULT COALESCE(CHAR_LENGTH(p_names), 0);
    DECLARE v_at, v_end int DEFAULT 1;
    DECLARE v_count int DEFAULT 0;
    -- Compared as bytes: a collation may equate or ignore characters.
    DECLARE v_char varbinary(4) DEFAULT '';
    DECLARE v_quote varchar(1) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE v_name longtext CHARACTER SET utf8mb4;
    SET p_list = '';
    IF v_length > 500 * p_most THEN
        SET v_length = 0;
    END IF;
    names: WHILE v_count < p_most AND v_at <= v_length DO
        SET v_char = SUBSTRING(p_names, v_at, 1);
        WHILE v_char IN (' ', '\t', '\n', '\r') DO
            SET v_at = v_at + 1, v_char = SUBSTRING(p_names, v_at, 1);
        END WHILE;
        SET v_end = v_at, v_name = '';
        IF v_char IN ('"', '`') THEN
            SET v_quote = v_char;
            quoted: LOOP
                SET v_end = LOCATE(v_quote, p_names COLLATE utf8mb4_bin, v_end + 1);
                IF v_end = 0 THEN
                    LEAVE names;
                ELSEIF CAST(SUBSTRING(p_names, v_end + 1, 1) AS binary) <> v_char THEN
                    LEAVE quoted;
                END IF;
                SET v_end = v_end + 1;
            END LOOP;
            SET v_name = REPLACE(SUBSTRING(p_names, v_at + 1, v_end - v_at - 1), REPEAT(v_quote, 2), v_quote),
                v_end = v_end + 1;
        ELSE
            WHILE v_char BETWEEN 'a' AND 'z' OR v_char BETWEEN 'A' AND 'Z' OR v_char BETWEEN '0' AND '9' OR v_char IN ('_', '$')
                OR v_char >= 0x80 DO
                SET v_end = v_end + 1, v_char = SUBSTRING(p_names, v_end, 1);
            END WHILE;
            SET v_name = SUBSTRING(p_names, v_at, v_end - v_at);
        END IF;
        IF CHAR_LENGTH(v_name) NOT BETWEEN 1 AND 200 THEN
            LEAVE names;
        END IF;
        SET p_list = CONCAT(p_list, IF(p_list = '', '', ','), JSON_QUOTE(v_name)), v_count = v_count + 1;
        SET v_at = v_end, v_char = SUBSTRING(p_names, v_at, 1);
        WHILE v_char IN (' ', '\t', '\n', '\r') DO
            SET v_at = v_at + 1, v_char = SUBSTRING(p_names, v_at, 1);
        END WHILE;
        IF v_char <> CAST(p_separator AS binary) THEN
            LEAVE names;
        END IF;
        SET v_at = v_at + 1;
        -- A separator after the last name.
        IF v_at > v_length OR v_count = p_most THEN
            SET v_at = 0;
            LEAVE names;
        END IF;
    END WHILE;
    IF v_count = 0 OR v_at <= v_length THEN
        CALL imq_raise_error('invalid_argument', CONCAT(p_argument, IF(p_separator = '.',
            ': must be the name of a table, plain or quoted',
            CONCAT(': must be 1 to ', p_most, ' columns, plain or quoted, separated by commas')),
            ', up to 200 characters a name'));
    END IF;
    SET p_list = CONCAT('[', p_list, ']');
END
