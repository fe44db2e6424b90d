-- send_changes: send the messages of one changed row: to each subscribed type, and to each type bound to a subscribed topic.
-- Arguments:   p_watched (the table's id in mq_watched), p_action (I, U or D), p_key and p_old_key (JSON; p_old_key is NULL
--              unless U)
-- Transaction: the writer's; it only inserts rows, and writers do not wait for each other
CREATE OR ALTER PROCEDURE imq_send_changes (
    p_watched integer, p_action varchar(1) CHARACTER SET ASCII, p_key mq_text, p_old_key mq_text
)
AS
DECLARE c_short integer = 2000;
DECLARE v_now timestamp;
DECLARE v_source mq_name; DECLARE v_topic mq_name; DECLARE v_type mq_name;
DECLARE v_head mq_argument;
DECLARE v_key varchar(2000) CHARACTER SET UTF8; DECLARE v_old_key varchar(2000) CHARACTER SET UTF8;
DECLARE v_body mq_text;
DECLARE v_id bigint;
DECLARE v_grouped smallint; DECLARE v_fair smallint;
BEGIN
    v_now = mq_utc_now();
    v_source = imq_consumer_name(NULL);
    SELECT w.head FROM mq_watched AS w WHERE w.id = :p_watched INTO v_head;
    -- Keys are compared as texts, without the column's collation: a key in another case is another key.
    IF (MAXVALUE(OCTET_LENGTH(p_key), COALESCE(OCTET_LENGTH(p_old_key), 0)) <= c_short) THEN
    BEGIN
        -- Each || of a BLOB creates another BLOB, which stays until the transaction ends.
        v_key = p_key;
        v_old_key = p_old_key;
        v_body = v_head || p_action || '","key":' || v_key || IIF(v_old_key <> v_key, ',"old_key":' || v_old_key, '') || '}';
    END
    ELSE
        v_body = v_head || p_action || '","key":' || p_key || IIF(p_old_key <> p_key, ',"old_key":' || p_old_key, '') || '}';
    FOR
        SELECT s.type, s.topic FROM mq_subscription AS s WHERE s.watched = :p_watched AND s.action = :p_action
        ORDER BY s.watched, s.action, s.type, s.topic
        INTO v_type, v_topic
    DO
        IF (v_topic <> '') THEN
            FOR SELECT type FROM imq_topic_types(:v_topic) INTO v_type DO
                -- A topic needs no escapes in JSON, see require_topic.
                EXECUTE PROCEDURE imq_write_message(NEXT VALUE FOR mq_message_id, v_type, v_body, v_now, v_now, 0, NULL, NULL, NULL,
                    '{"topic":"' || v_topic || '"}', v_source);
        ELSE
        BEGIN
            -- The same as write_message for a due message, without procedure calls: each takes half the time of an insert.
            v_grouped = NULL;
            SELECT grouped, fair FROM mq_queue WHERE type = :v_type INTO v_grouped, v_fair;
            IF (v_grouped IS NULL) THEN
                SELECT grouped, fair FROM mq_queue WHERE type = '' INTO v_grouped, v_fair;
            v_id = NEXT VALUE FOR mq_message_id;
            INSERT INTO mq_message (id, run_at, created_at, priority, type, body, source)
            VALUES (:v_id, :v_now, :v_now, 0, :v_type, :v_body, :v_source);
            IF (v_grouped = 1) THEN
                INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:v_type, '', :v_id, 0);
            INSERT INTO mq_ready (type, priority, run_at, id, attempts, lane)
            VALUES (:v_type, 0, :v_now, :v_id, 0, IIF(:v_fair = 1, '32768', NULL));
            EXECUTE PROCEDURE imq_wake(v_type);
        END
END
