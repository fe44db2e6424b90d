-- publish: send one message to each type that is bound to a topic.
-- Arguments:   p_topic (words with dots between them), p_body and the others as for send_message; p_headers is a JSON object
--              or NULL, and has up to 64 KiB with the topic in it
-- Returns:     count (messages sent, without those that a live message of the dedup_key stood for)
-- Errors:      50001 wrong_isolation (with on_conflict replace or postpone), 50002 invalid_argument
-- Transaction: joins the caller's; waits as send_message does
-- Example:     SELECT * FROM mq_publish('orders.eu.paid', '{"order":17}');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_publish (
    p_topic mq_argument,
    p_body mq_text,
    p_run_at timestamp = NULL,
    p_priority bigint = NULL,
    p_group_key mq_argument = NULL,
    p_dedup_key mq_argument = NULL,
    p_max_attempts bigint = NULL,
    p_headers mq_text = NULL,
    p_source mq_argument = NULL,
    p_delay_seconds bigint = NULL,
    p_on_conflict mq_argument = NULL
)
RETURNS (
    "COUNT" bigint
)
AS
DECLARE v_object mq_text;
DECLARE v_headers mq_text;
DECLARE v_type mq_name;
DECLARE v_id bigint;
DECLARE v_created smallint;
DECLARE v_changed smallint;
BEGIN
    EXECUTE PROCEDURE mq_require_topic('topic', p_topic, 0);
    v_object = COALESCE(TRIM(p_headers), '{}');
    IF (v_object NOT LIKE '{%}') THEN
        EXECUTE PROCEDURE mq_raise_error('invalid_argument', 'headers: must be a JSON object');
    -- A topic needs no escapes in JSON: require_topic has seen to that.
    v_headers = '{"topic":"' || p_topic || '"';
    IF (CHAR_LENGTH(REPLACE(v_object, ' ', '')) = 2) THEN
        v_headers = v_headers || '}';
    ELSE
        v_headers = v_headers || ',' || SUBSTRING(v_object FROM 2);
    -- Also when nobody is bound.
    EXECUTE PROCEDURE mq_require_message(p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, v_headers, p_source,
        p_delay_seconds, p_on_conflict);
    "COUNT" = 0;
    -- In the order of their names, so that two publishers with one dedup_key do not wait for each other in a circle.
    FOR SELECT type FROM mq_topic_types(:p_topic) INTO v_type DO
    BEGIN
        EXECUTE PROCEDURE mq_send_message(v_type, p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, v_headers,
            p_source, p_delay_seconds, p_on_conflict) RETURNING_VALUES v_id, v_created, v_changed;
        "COUNT" = "COUNT" + v_created;
    END
    SUSPEND;
END^

SET TERM ; ^
