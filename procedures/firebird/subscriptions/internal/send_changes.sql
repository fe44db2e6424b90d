-- send_changes: send a message for a changed row to each of its subscriptions.
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
DECLARE v_type mq_name;
DECLARE v_ordered smallint;
DECLARE v_notify smallint;
DECLARE v_id bigint;
BEGIN
    v_now = mq_utc_now();
    v_source = mq_reader_name(NULL);
    -- Keys are compared as texts: in another case, say, it is another one, whatever the column's collation says.
    SELECT w.head || :p_action || '","key":' || :p_key || IIF(:p_old_key <> :p_key, ',"old_key":' || :p_old_key, '') || '}'
    FROM mq_watched AS w WHERE w.id = :p_watched
    INTO v_body;
    FOR
        SELECT s.type FROM mq_subscription AS s WHERE s.watched = :p_watched AND s.action = :p_action
        ORDER BY s.watched, s.action, s.type
        INTO v_type
    DO
    BEGIN
        SELECT ordered, notify FROM mq_policy(:v_type) INTO v_ordered, v_notify;
        v_id = NEXT VALUE FOR mq_message_id;
        INSERT INTO mq_message (id, run_at, created_at, priority, type, body, source)
        VALUES (:v_id, :v_now, :v_now, 0, :v_type, :v_body, :v_source);
        IF (v_ordered = 1) THEN
            INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:v_type, '', :v_id, 0);
        INSERT INTO mq_ready (type, priority, run_at, id, attempts) VALUES (:v_type, 0, :v_now, :v_id, 0);
        IF (v_notify = 1) THEN
            EXECUTE PROCEDURE mq_wake(v_type);
    END
END^

SET TERM ; ^
