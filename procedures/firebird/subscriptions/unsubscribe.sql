-- unsubscribe: delete subscriptions of a table.
-- Arguments:   p_table (a watched table), p_action (I, U or D, or several of them; NULL: all), p_type or p_topic (both NULL:
--              all); the last three are not all NULL
-- Returns:     affected: subscriptions deleted
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; messages that were sent stay
-- Example:     SELECT * FROM mq_unsubscribe('stock', NULL, 'stock.changed');

CREATE OR ALTER PROCEDURE mq_unsubscribe (
    p_table mq_text,
    p_action mq_text = NULL,
    p_type mq_argument = NULL,
    p_topic mq_argument = NULL
)
RETURNS (affected bigint)
AS
DECLARE v_watched integer;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_actions varchar(3) CHARACTER SET ASCII;
BEGIN
    IF (p_action IS NULL AND p_type IS NULL AND p_topic IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'action: give an action, a type or a topic; IUD selects all');
    EXECUTE PROCEDURE imq_require_actions(p_action, 1);
    IF (p_type IS NOT NULL AND p_topic IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'type: give either a type or a topic');
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE imq_require_name('topic', p_topic, 1);
    SELECT w.id, w.quoted FROM imq_find_watched(:p_table) AS w INTO v_watched, v_quoted;
    IF (v_quoted IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_require_rights(v_quoted, NULL, 0);
    v_actions = COALESCE(p_action, 'IUD');
    DELETE FROM mq_subscription AS s
    WHERE s.watched = :v_watched AND POSITION(s.action IN :v_actions) > 0 AND (:p_type IS NULL OR s.type = :p_type)
        AND (:p_topic IS NULL OR s.topic = :p_topic);
    affected = ROW_COUNT;
    SUSPEND;
END
