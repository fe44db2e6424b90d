-- send_batch: send many messages in one call: all of them or none.
-- Arguments:   p_type (1 to 200 characters), p_bodies (1 to 10,000 bodies of up to 16 MiB, one per line; a body that is
--              empty, contains a line feed or begins with a double quote is written as a JSON string)
-- Returns:     affected: messages sent
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the messages can be claimed when it commits
-- Example:     SELECT * FROM mq_send_batch('email', '{"to":"ada@example.org"}' || ASCII_CHAR(10) || '{"to":"alan@example.org"}');

CREATE OR ALTER PROCEDURE mq_send_batch (
    p_type mq_argument,
    p_bodies mq_text
)
RETURNS (affected bigint)
AS
DECLARE v_now timestamp;
DECLARE v_grouped smallint; DECLARE v_fair smallint;
DECLARE v_source mq_name;
DECLARE v_n integer;
DECLARE v_body mq_text;
DECLARE v_id bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    v_now = mq_utc_now();
    v_source = imq_consumer_name(NULL);
    SELECT grouped, fair FROM imq_policy(:p_type) INTO v_grouped, v_fair;
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
        INSERT INTO mq_message (id, run_at, created_at, priority, type, body, source)
        VALUES (:v_id, :v_now, :v_now, 0, :p_type, :v_body, :v_source);
        IF (v_grouped = 1) THEN
            INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:p_type, '', :v_id, 0);
        INSERT INTO mq_ready (type, priority, run_at, id, attempts, lane)
        VALUES (:p_type, 0, :v_now, :v_id, 0, IIF(:v_fair = 1, '32768', NULL));
    END
    IF (affected = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'bodies: must be 1 to 10,000 lines, not 0');
    EXECUTE PROCEDURE imq_wake(p_type);
    SUSPEND;
END
