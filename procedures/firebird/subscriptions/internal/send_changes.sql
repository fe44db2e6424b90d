-- send_changes: send a message for a changed row to each of the subscribed types, and to those of subscribed topics.
-- Arguments:   p_watched (the table's id in mq_watched), p_action (I, U or D), p_key and p_old_key (JSON; NULL unless U)
-- Returns:     nothing
-- Errors:      none
-- Transaction: the writer's; what it changes is new rows only, so that writers do not meet each other
-- Example:     EXECUTE PROCEDURE mq_send_changes(1, 'I', '{"ID":7}', NULL);

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_send_changes (
    p_watched integer,
    p_action varchar(1) CHARACTER SET ASCII,
    p_key mq_text,
    p_old_key mq_text
)
AS
DECLARE v_now timestamp;
DECLARE v_source mq_name;
DECLARE v_body mq_text;
DECLARE v_topic mq_name;
DECLARE v_type mq_name;
BEGIN
    v_now = mq_utc_now();
    v_source = mq_reader_name(NULL);
    -- Keys are compared as texts: in another case, say, it is another one, whatever the column's collation says.
    SELECT w.head || :p_action || '","key":' || :p_key || IIF(:p_old_key <> :p_key, ',"old_key":' || :p_old_key, '') || '}'
    FROM mq_watched AS w WHERE w.id = :p_watched
    INTO v_body;
    FOR
        SELECT s.type, s.topic FROM mq_subscription AS s WHERE s.watched = :p_watched AND s.action = :p_action
        ORDER BY s.watched, s.action, s.type, s.topic
        INTO v_type, v_topic
    DO
        IF (v_topic = '') THEN
            EXECUTE PROCEDURE mq_write_message(NEXT VALUE FOR mq_message_id, v_type, v_body, v_now, v_now, 0, NULL, NULL, NULL, NULL,
                v_source);
        ELSE
            FOR SELECT type FROM mq_topic_types(:v_topic) INTO v_type DO
                -- A topic needs no escapes in JSON, see require_topic.
                EXECUTE PROCEDURE mq_write_message(NEXT VALUE FOR mq_message_id, v_type, v_body, v_now, v_now, 0, NULL, NULL, NULL,
                    '{"topic":"' || v_topic || '"}', v_source);
END^

SET TERM ; ^
