-- publish_with: send one message with options to each type that is bound to the topic.
-- Arguments:   p_topic (words separated by dots, 1 to 200 characters), p_body (up to 16 MiB), p_options (as for send_with;
--              headers are a JSON object, up to 64 KiB with the topic in it)
-- Returns:     affected: messages sent; a type with a live message of this dedup_key is not counted
-- Errors:      50001 wrong_isolation (with on_conflict replace or postpone), 50002 invalid_argument
-- Transaction: joins the caller's; waits like send_message
-- Example:     SELECT * FROM mq_publish_with('orders.eu.paid', '{"order":17}', '{"delay_seconds": 60}');
CREATE OR ALTER PROCEDURE mq_publish_with (
    p_topic mq_argument,
    p_body mq_text,
    p_options mq_text = NULL
)
RETURNS (affected bigint)
AS
DECLARE v_object mq_text; DECLARE v_all mq_text;
DECLARE v_run_at timestamp; DECLARE v_priority bigint; DECLARE v_group_key mq_argument; DECLARE v_dedup_key mq_argument;
DECLARE v_max_attempts bigint; DECLARE v_headers mq_text; DECLARE v_source mq_argument; DECLARE v_delay_seconds bigint;
DECLARE v_on_conflict mq_text;
DECLARE v_type mq_name;
DECLARE v_id bigint;
DECLARE v_created smallint; DECLARE v_changed smallint; DECLARE v_state varchar(1) CHARACTER SET ASCII;
BEGIN
    EXECUTE PROCEDURE imq_require_topic('topic', p_topic, 0);
    SELECT run_at, priority, group_key, dedup_key, max_attempts, headers, source, delay_seconds, on_conflict
    FROM imq_send_options(:p_options)
    INTO v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers, v_source, v_delay_seconds, v_on_conflict;
    v_object = COALESCE(v_headers, '{}');
    IF (v_object NOT LIKE '{%}') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'headers: must be a JSON object with unique names');
    -- A topic needs no escapes in JSON: require_topic has checked it.
    v_all = '{"topic":"' || p_topic || '"';
    IF (CHAR_LENGTH(REPLACE(REPLACE(REPLACE(REPLACE(v_object, ' ', ''), ASCII_CHAR(9), ''), ASCII_CHAR(10), ''), ASCII_CHAR(13), '')) = 2) THEN
        v_all = v_all || '}';
    ELSE
        v_all = v_all || ',' || SUBSTRING(v_object FROM 2);
    -- Checked even if no type is bound.
    EXECUTE PROCEDURE imq_require_message(p_body, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_all, v_source,
        v_delay_seconds, v_on_conflict);
    affected = 0;
    -- In the order of their names: two publishers with the same dedup_key lock in the same order and do not deadlock.
    FOR SELECT type FROM imq_topic_types(:p_topic) INTO v_type DO
    BEGIN
        EXECUTE PROCEDURE mq_send_message(v_type, p_body, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_all,
            v_source, v_delay_seconds, v_on_conflict) RETURNING_VALUES v_id, v_created, v_changed, v_state;
        affected = affected + v_created;
    END
    SUSPEND;
END
