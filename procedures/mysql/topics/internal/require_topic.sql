-- require_topic: refuse a text that is not a topic, or not a pattern of topics.
-- Arguments:   p_argument (its name in the contract), p_topic, p_wildcards (1: a pattern, in which a word may be * or #)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_topic(
    IN p_argument varchar(200) CHARACTER SET utf8mb4, IN p_topic longtext CHARACTER SET utf8mb4, IN p_wildcards tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_word varchar(100) CHARACTER SET utf8mb4 DEFAULT '[^.*#"\\\\[:space:][:cntrl:]]+';
    CALL imq_require_name(p_argument, p_topic, 0);
    SET v_word = IF(p_wildcards, CONCAT('([*]|#|', v_word, ')'), v_word);
    IF p_topic NOT REGEXP CONCAT('^', v_word, '([.]', v_word, ')*\\z') THEN
        CALL imq_raise_error('invalid_argument', CONCAT(p_argument, ': must be words separated by dots',
            IF(p_wildcards, '; a word may be * or #', ', without *, #, quotes, backslashes or white space')));
    END IF;
END
