-- subscribe: from now on, send a message to a type or topic for each changed row of a table.
-- Arguments:   p_table (a watched table), p_action (I, U or D, or several of them), and either p_type (1 to 200 characters)
--              or p_topic (each type bound to it at the time of the change gets one message)
-- Returns:     affected: new subscriptions
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; changes of transactions that see its commit are sent; a SNAPSHOT that started before it
--              sends nothing
-- Example:     SELECT * FROM mq_subscribe('stock', 'IU', 'stock.changed');

CREATE OR ALTER PROCEDURE mq_subscribe (
    p_table mq_text,
    p_action mq_text,
    p_type mq_argument = NULL,
    p_topic mq_argument = NULL
)
RETURNS (affected bigint)
AS
DECLARE v_watched integer;
DECLARE v_label mq_name;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_actions varchar(3) CHARACTER SET ASCII;
DECLARE v_action varchar(1) CHARACTER SET ASCII;
BEGIN
    EXECUTE PROCEDURE imq_require_actions(p_action, 0);
    IF (p_type IS NULL AND p_topic IS NULL OR p_type IS NOT NULL AND p_topic IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'type: give either a type or a topic');
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    IF (p_topic IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_require_topic('topic', p_topic, 0);
    SELECT w.id, w.label, w.quoted FROM imq_find_watched(:p_table) AS w INTO v_watched, v_label, v_quoted;
    IF (v_quoted IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('not_found', 'table: there is no table ' || v_label || ' any more');
    -- The messages contain keys of the rows that change.
    EXECUTE PROCEDURE imq_require_rights(v_quoted, NULL, 0);
    v_actions = p_action;
    affected = 0;
    WHILE (v_actions <> '') DO
    BEGIN
        v_action = LEFT(v_actions, 1);
        v_actions = SUBSTRING(v_actions FROM 2);
        BEGIN
            INSERT INTO mq_subscription (watched, action, type, topic)
            VALUES (:v_watched, :v_action, COALESCE(:p_type, ''), COALESCE(:p_topic, ''));
            affected = affected + 1;
            WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
                -- The subscription exists already. If it is not visible, another transaction has not committed it and may
                -- roll back: raise the error.
                IF (NOT EXISTS (
                    SELECT 1 FROM mq_subscription AS s
                    WHERE s.watched = :v_watched AND s.action = :v_action AND s.type = COALESCE(:p_type, '')
                        AND s.topic = COALESCE(:p_topic, '')
                )) THEN
                    EXCEPTION;
        END
    END
    SUSPEND;
END
