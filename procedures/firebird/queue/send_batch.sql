-- send_batch: send many messages in one call: all of them or none.
-- Arguments:   p_type (1 to 200 characters), p_bodies (1 to 10,000 bodies of up to 16 MiB, one per line; a body that is
--              empty, contains a line feed or begins with a double quote is written as a JSON string), p_options (for all
--              messages: those of send_with except dedup_key and on_conflict; NULL: none)
-- Returns:     affected: messages sent
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the messages can be claimed when it commits
-- Example:     SELECT * FROM mq_send_batch('email', '{"to":"ada@example.org"}', '{"delay_seconds": 60}');

CREATE OR ALTER PROCEDURE mq_send_batch (
    p_type mq_argument,
    p_bodies mq_text,
    p_options mq_text = NULL
)
RETURNS (affected bigint)
AS
DECLARE v_now timestamp; DECLARE v_run_at timestamp;
DECLARE v_grouped smallint; DECLARE v_fair smallint;
DECLARE v_priority bigint; DECLARE v_max_attempts bigint; DECLARE v_delay_seconds bigint;
DECLARE v_group_key mq_argument; DECLARE v_source mq_argument;
DECLARE v_headers mq_text;
DECLARE v_lane mq_lane;
DECLARE v_n integer;
DECLARE v_body mq_text;
DECLARE v_id bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    IF (p_options IS NOT NULL) THEN
    BEGIN
        SELECT run_at, priority, group_key, max_attempts, headers, source, delay_seconds FROM imq_send_options(:p_options, 1)
        INTO v_run_at, v_priority, v_group_key, v_max_attempts, v_headers, v_source, v_delay_seconds;
        EXECUTE PROCEDURE imq_require_message('', v_run_at, v_priority, v_group_key, NULL, v_max_attempts, v_headers, v_source,
            v_delay_seconds, NULL);
    END
    v_now = mq_utc_now();
    v_run_at = COALESCE(v_run_at, DATEADD(v_delay_seconds SECOND TO v_now), v_now);
    v_priority = COALESCE(v_priority, 0);
    v_source = imq_consumer_name(v_source);
    SELECT grouped, fair FROM imq_policy(:p_type) INTO v_grouped, v_fair;
    IF (v_fair = 1) THEN
        v_lane = LPAD(v_priority + 32768, 5, '0') || COALESCE(v_group_key, '');
    affected = 0;
    FOR SELECT n, item FROM imq_split_list('bodies', :p_bodies) INTO v_n, v_body DO
    BEGIN
        IF (OCTET_LENGTH(v_body) > 16777216) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument',
                'bodies: line ' || v_n || ': must be a text of up to 16 MiB (16,777,216 bytes)');
        affected = affected + 1;
        IF (affected > 10000) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'bodies: must be 1 to 10,000 lines, not more');
        v_id = NEXT VALUE FOR mq_message_id;
        INSERT INTO mq_message (id, run_at, created_at, priority, max_attempts, type, body, headers, group_key, source)
        VALUES (:v_id, :v_run_at, :v_now, :v_priority, :v_max_attempts, :p_type, :v_body, :v_headers, :v_group_key, :v_source);
        IF (v_run_at > v_now) THEN
            INSERT INTO mq_delayed (id, type, run_at, priority, attempts) VALUES (:v_id, :p_type, :v_run_at, :v_priority, 0);
        ELSE
        BEGIN
            IF (v_grouped = 1) THEN
                INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:p_type, COALESCE(:v_group_key, ''), :v_id, 0);
            INSERT INTO mq_ready (type, priority, run_at, id, attempts, lane)
            VALUES (:p_type, :v_priority, :v_run_at, :v_id, 0, :v_lane);
        END
    END
    IF (affected = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'bodies: must be 1 to 10,000 lines, not 0');
    IF (v_run_at < v_now) THEN
        EXECUTE PROCEDURE imq_lower_mark(p_type);
    EXECUTE PROCEDURE imq_wake(p_type);
    SUSPEND;
END
