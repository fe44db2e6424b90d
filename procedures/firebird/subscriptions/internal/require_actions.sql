-- require_actions: refuse an action that is not one or more of the letters I, U and D, each once.
-- Arguments:   p_action, p_optional (1: NULL is allowed)
CREATE OR ALTER PROCEDURE imq_require_actions (p_action mq_text, p_optional smallint)
AS
BEGIN
    IF (p_action IS NULL AND p_optional = 1) THEN
        EXIT;
    -- Remove each letter once: nothing may be left.
    IF (p_action IS NULL OR CHAR_LENGTH(p_action) NOT BETWEEN 1 AND 3
        OR CHAR_LENGTH(REPLACE(REPLACE(REPLACE(p_action, 'I', ''), 'U', ''), 'D', '')) > 0
        OR CHAR_LENGTH(REPLACE(p_action, 'I', '')) < CHAR_LENGTH(p_action) - 1
        OR CHAR_LENGTH(REPLACE(p_action, 'U', '')) < CHAR_LENGTH(p_action) - 1
        OR CHAR_LENGTH(REPLACE(p_action, 'D', '')) < CHAR_LENGTH(p_action) - 1) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'action: must be I, U or D (insert, update, delete), or several of them');
END
