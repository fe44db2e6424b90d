-- tell_changes: send a message for a changed row to each of its subscriptions.
-- Arguments:   p_watched (the table's id in mq_watched), p_action (I, U or D), p_key and p_old_key (JSON; NULL unless U)
-- Returns:     nothing
-- Errors:      none
-- Transaction: the writer's; what it changes is new rows only, so that writers do not meet each other
-- Example:     EXECUTE PROCEDURE mq_tell_changes(1, 'I', '{"ID":7}', NULL);

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_tell_changes (
    p_watched integer,
    p_action varchar(1) CHARACTER SET ASCII,
    p_key mq_text,
    p_old_key mq_text
)
AS
DECLARE v_body mq_text;
DECLARE v_type mq_name;
DECLARE v_id bigint;
BEGIN
    -- IS DISTINCT FROM: the key of a row has no NULL, and is another one when its text is.
    SELECT w.head || :p_action || '","key":' || :p_key
        || CASE WHEN :p_old_key <> :p_key THEN ',"old_key":' || :p_old_key ELSE '' END || '}'
    FROM mq_watched AS w WHERE w.id = :p_watched
    INTO v_body;
    FOR
        SELECT s.type FROM mq_subscription AS s WHERE s.watched = :p_watched AND s.action = :p_action
        ORDER BY s.watched, s.action, s.type
        INTO v_type
    DO
        EXECUTE PROCEDURE mq_send(v_type, v_body) RETURNING_VALUES v_id;
END^

SET TERM ; ^
