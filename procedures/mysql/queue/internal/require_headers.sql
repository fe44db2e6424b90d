-- require_headers: refuse headers that are not a JSON object with unique names, from its { to its }.
-- Arguments:   p_headers (NULL: none)
--
-- The servers keep one of two equal names. So the members are counted in the text: without strings and what is nested,
-- one more than its commas. MariaDB compares names as they are written, accepts the empty name twice, and its JSON_VALID
-- accepts unfinished numbers and unknown escapes, which are checked here.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_headers(IN p_headers longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER CONTAINS SQL
BEGIN
    DECLARE c_backslash char(1) CHARACTER SET utf8mb4 DEFAULT CHAR(92 USING utf8mb4);
    DECLARE v_text longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT p_headers;
    DECLARE v_fits tinyint DEFAULT LEFT(p_headers, 1) = '{' AND RIGHT(p_headers, 1) = '}' AND JSON_VALID(p_headers);
    IF v_fits THEN
        SET v_text = REPLACE(REPLACE(v_text, CONCAT(c_backslash, c_backslash), ''), CONCAT(c_backslash, '"'), '');
        SET v_fits = v_text NOT REGEXP CONCAT(c_backslash, c_backslash, '[^/bfnrtu]');
        SET v_text = REGEXP_REPLACE(v_text, '"[^"]*"', '0');
        SET v_fits = v_fits AND v_text NOT REGEXP '([.+-]|[0-9][eE])[^0-9+-]';
        SET v_text = REPLACE(REPLACE(REPLACE(REPLACE(v_text, '[', '<'), ']', '>'), '{', '<'), '}', '>');
        SET v_text = SUBSTRING(v_text, 2, CHAR_LENGTH(v_text) - 2);
        WHILE LOCATE('<', v_text) > 0 DO
            SET v_text = REGEXP_REPLACE(v_text, '<[^<>]*>', '0');
        END WHILE;
        SET v_fits = v_fits AND COALESCE(JSON_LENGTH(JSON_KEYS(p_headers)), 0)
            = IF(LOCATE(':', v_text) > 0, 1 + CHAR_LENGTH(v_text) - CHAR_LENGTH(REPLACE(v_text, ',', '')), 0);
    END IF;
    IF NOT COALESCE(v_fits, p_headers IS NULL) THEN
        CALL imq_raise_error('invalid_argument', 'headers: must be a JSON object with unique names');
    END IF;
END
