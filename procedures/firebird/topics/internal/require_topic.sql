-- require_topic: refuse what is no topic, or no pattern of topics.
-- Arguments:   p_argument (its name in the contract), p_topic, p_wildcards (1: a word may be * or #)
-- Returns:     nothing
-- Errors:      50002 invalid_argument
-- Transaction: reads nothing
-- Example:     EXECUTE PROCEDURE mq_require_topic('pattern', 'orders.#', 1);

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_require_topic (
    p_argument varchar(30) CHARACTER SET ASCII,
    p_topic mq_argument,
    p_wildcards smallint
)
AS
DECLARE v_word varchar(50) CHARACTER SET UTF8;
BEGIN
    -- A blank at the end is told as one in the middle is.
    IF (p_topic IS NULL OR CHAR_LENGTH(p_topic) NOT BETWEEN 1 AND 200) THEN
        EXECUTE PROCEDURE mq_require_name(p_argument, p_topic, 0);
    -- The blank by itself: Firebird 3.0 knows no range that ends with it.
    v_word = '[^.\*#"\\ ' || ASCII_CHAR(1) || '-' || ASCII_CHAR(31) || ASCII_CHAR(127) || ']+';
    IF (p_wildcards = 1) THEN
    BEGIN
        v_word = '(' || v_word || '|\*|#)';
        IF (p_topic NOT SIMILAR TO v_word || '(.' || v_word || ')*' ESCAPE '\') THEN
            EXECUTE PROCEDURE mq_raise_error('invalid_argument', p_argument || ': must be words with dots between them; a word may be '
                || '* or #, and has no other *, no other #, no quotes, backslashes and white space');
    END
    -- What is left can stand in JSON as it is: see publish.
    ELSE IF (p_topic NOT SIMILAR TO v_word || '(.' || v_word || ')*' ESCAPE '\') THEN
        EXECUTE PROCEDURE mq_raise_error('invalid_argument', p_argument || ': must be words with dots between them, without *, #, '
            || 'quotes, backslashes and white space');
END^

SET TERM ; ^
