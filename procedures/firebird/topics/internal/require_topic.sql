-- require_topic: refuse a text that is not a topic, or not a pattern of topics.
-- Arguments:   p_argument (its name in the contract), p_topic, p_wildcards (1: a pattern, in which a word may be * or #)
CREATE OR ALTER PROCEDURE imq_require_topic (
    p_argument varchar(30) CHARACTER SET ASCII, p_topic mq_argument, p_wildcards smallint
)
AS
DECLARE v_word varchar(50) CHARACTER SET UTF8;
BEGIN
    -- A blank at the end is reported like one in the middle.
    IF (p_topic IS NULL OR CHAR_LENGTH(p_topic) NOT BETWEEN 1 AND 200) THEN
        EXECUTE PROCEDURE imq_require_name(p_argument, p_topic, 0);
    -- The blank separately: Firebird 3.0 does not support a range that ends with a blank.
    v_word = '[^.\*#"\\ ' || ASCII_CHAR(1) || '-' || ASCII_CHAR(31) || ASCII_CHAR(127) || ']+';
    IF (p_wildcards = 1) THEN
    BEGIN
        v_word = '(' || v_word || '|\*|#)';
        IF (p_topic NOT SIMILAR TO v_word || '(.' || v_word || ')*' ESCAPE '\') THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': must be words separated by dots; a word may be '
                || '* or #, and otherwise contains no *, #, quotes, backslashes or white space');
    END
    -- A topic that passes needs no escapes in JSON: see publish.
    ELSE IF (p_topic NOT SIMILAR TO v_word || '(.' || v_word || ')*' ESCAPE '\') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': must be words separated by dots, without *, #, '
            || 'quotes, backslashes or white space');
END
