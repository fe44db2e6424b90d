-- bind_topic: send each message that is published to a matching topic to this queue.
-- Arguments:   p_pattern (words separated by dots; * matches exactly one word, # zero or more), p_type; both have 1 to
--              200 characters
-- Returns:     created: 1; 0 when the binding already exists
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; applies to messages published after its commit
-- Example:     SELECT * FROM mq_bind_topic('orders.*.paid', 'invoice');

CREATE OR ALTER PROCEDURE mq_bind_topic (
    p_pattern mq_argument,
    p_type mq_argument
)
RETURNS (created smallint)
AS
DECLARE v_left varchar(201) CHARACTER SET UTF8;
DECLARE v_word mq_name;
DECLARE v_like varchar(500) CHARACTER SET UTF8 = '';
BEGIN
    EXECUTE PROCEDURE imq_require_topic('pattern', p_pattern, 1);
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    v_left = p_pattern || '.';
    WHILE (CHAR_LENGTH(v_left) > 0) DO
    BEGIN
        v_word = LEFT(v_left, POSITION('.' IN v_left) - 1);
        v_left = SUBSTRING(v_left FROM CHAR_LENGTH(v_word) + 2);
        v_like = v_like || CASE v_word
            WHEN '#' THEN '%'
            WHEN '*' THEN '.%.'
            ELSE '.' || REPLACE(REPLACE(v_word, '%', '\%'), '_', '\_') || '.'
        END;
    END
    BEGIN
        INSERT INTO mq_binding (pattern, type, like_pattern) VALUES (:p_pattern, :p_type, :v_like);
        created = 1;
        WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
        BEGIN
            created = 0;
            -- It exists already. A binding that another transaction has not committed may be rolled back.
            IF (NOT EXISTS (SELECT 1 FROM mq_binding AS b WHERE b.pattern = :p_pattern AND b.type = :p_type)) THEN
                EXCEPTION;
        END
    END
    SUSPEND;
END
