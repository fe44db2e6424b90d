-- unbind_topic: remove the bindings of a pattern, of a queue, or one.
-- Arguments:   p_pattern (as it was bound; NULL: all of the queue), p_type (NULL: all of the pattern); 1 to 200 characters, and
--              not both NULL
-- Returns:     affected: bindings removed
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; messages that were sent stay
-- Example:     SELECT * FROM mq_unbind_topic('orders.*.paid', 'invoice');

CREATE OR ALTER PROCEDURE mq_unbind_topic (
    p_pattern mq_argument = NULL,
    p_type mq_argument = NULL
)
RETURNS (affected bigint)
AS
DECLARE v_type mq_name;
BEGIN
    IF (p_pattern IS NULL AND p_type IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'pattern: give a pattern, a type, or both');
    EXECUTE PROCEDURE imq_require_name('pattern', p_pattern, 1);
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    affected = 0;
    FOR SELECT b.type
        FROM mq_binding AS b
        WHERE (:p_pattern IS NULL OR b.pattern = :p_pattern) AND (:p_type IS NULL OR b.type = :p_type)
        INTO v_type AS CURSOR c
    DO
    BEGIN
        DELETE FROM mq_binding WHERE CURRENT OF c;
        affected = affected + 1;
        -- 3.0: another call has just removed it.
        WHEN GDSCODE random, GDSCODE no_cur_rec DO
            v_type = NULL;
    END
    SUSPEND;
END
