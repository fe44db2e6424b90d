-- publish: send one message to each type that is bound to the topic.
-- Arguments:   p_topic (words separated by dots, 1 to 200 characters), p_headers (a JSON object, up to 64 KiB with the
--              topic in it; NULL: only the topic); as for send_message: p_body, p_run_at, p_priority, p_group_key,
--              p_dedup_key, p_max_attempts, p_source, p_delay_seconds, p_on_conflict
-- Returns:     count: messages sent; a type with a live message of this dedup_key is not counted
-- Errors:      50001 wrong_isolation (with on_conflict replace or postpone), 50002 invalid_argument
-- Transaction: joins the caller's; waits like send_message
-- Example:     SELECT * FROM mq_publish('orders.eu.paid', '{"order":17}');

CREATE OR ALTER PROCEDURE mq_publish (
    p_topic mq_argument, p_body mq_text, p_run_at timestamp = NULL, p_priority bigint = NULL,
    p_group_key mq_argument = NULL, p_dedup_key mq_argument = NULL, p_max_attempts bigint = NULL,
    p_headers mq_text = NULL, p_source mq_argument = NULL, p_delay_seconds bigint = NULL,
    p_on_conflict mq_text = NULL
)
RETURNS ("COUNT" bigint)
AS
DECLARE v_object mq_text; DECLARE v_headers mq_text;
DECLARE v_type mq_name;
DECLARE v_id bigint;
DECLARE v_created smallint; DECLARE v_changed smallint; DECLARE v_state varchar(1) CHARACTER SET ASCII;
BEGIN
    EXECUTE PROCEDURE imq_require_topic('topic', p_topic, 0);
    v_object = COALESCE(p_headers, '{}');
    IF (v_object NOT LIKE '{%}') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'headers: must be a JSON object with unique names');
    -- A topic needs no escapes in JSON: require_topic has checked it.
    v_headers = '{"topic":"' || p_topic || '"';
    IF (CHAR_LENGTH(REPLACE(REPLACE(REPLACE(REPLACE(v_object, ' ', ''), ASCII_CHAR(9), ''), ASCII_CHAR(10), ''), ASCII_CHAR(13), '')) = 2) THEN
        v_headers = v_headers || '}';
    ELSE
        v_headers = v_headers || ',' || SUBSTRING(v_object FROM 2);
    -- Checked even if no type is bound.
    EXECUTE PROCEDURE imq_require_message(p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, v_headers, p_source,
        p_delay_seconds, p_on_conflict);
    "COUNT" = 0;
    -- In the order of their names: two publishers with the same dedup_key lock in the same order and do not deadlock.
    FOR SELECT type FROM imq_topic_types(:p_topic) INTO v_type DO
    BEGIN
        EXECUTE PROCEDURE mq_send_message(v_type, p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, v_headers,
            p_source, p_delay_seconds, p_on_conflict) RETURNING_VALUES v_id, v_created, v_changed, v_state;
        "COUNT" = "COUNT" + v_created;
    END
    SUSPEND;
END
