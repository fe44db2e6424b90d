-- topic_path: a topic as a text that LIKE can compare with patterns.
-- Arguments:   p_topic (a topic or a pattern)
-- Returns:     p_path: for each word a dot and a hash of 32 digits; in a pattern, * becomes a wildcard for one such hash,
--              and # becomes %
--
-- Each word begins with a dot, which occurs nowhere else, and all words have the same length: so % cannot match a part of
-- a word. LIKE backtracks only to the last %, so its time is bounded; that of a regular expression is not.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_topic_path(
    IN p_topic varchar(200) CHARACTER SET utf8mb4, OUT p_path text CHARACTER SET ascii
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_rest varchar(201) CHARACTER SET utf8mb4 DEFAULT CONCAT(p_topic, '.');
    DECLARE v_word varchar(200) CHARACTER SET utf8mb4;
    SET p_path = '';
    WHILE v_rest <> '' DO
        SET v_word = SUBSTRING_INDEX(v_rest, '.', 1), v_rest = SUBSTRING(v_rest, CHAR_LENGTH(v_word) + 2);
        SET p_path = CONCAT(p_path, CASE v_word
            WHEN '#' THEN '%'
            WHEN '*' THEN CONCAT('.', REPEAT('_', 32))
            ELSE CONCAT('.', LEFT(SHA2(v_word, 256), 32))
        END);
    END WHILE;
END
