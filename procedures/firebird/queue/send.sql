-- send: send one message that is ready now.
-- Arguments:   p_type (1 to 200 characters), p_body (up to 16 MiB)
-- Returns:     id of the message
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the message can be claimed when it commits
-- Example:     SELECT id FROM mq_send('email', '{"to":"ada@example.org"}');

CREATE OR ALTER PROCEDURE mq_send (
    p_type mq_argument,
    p_body mq_text
)
RETURNS (id bigint)
AS
DECLARE v_now timestamp;
DECLARE v_grouped smallint; DECLARE v_fair smallint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    IF (p_body IS NULL OR OCTET_LENGTH(p_body) > 16777216) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    v_now = mq_utc_now();
    SELECT grouped, fair FROM imq_policy(:p_type) INTO v_grouped, v_fair;
    id = NEXT VALUE FOR mq_message_id;
    INSERT INTO mq_message (id, run_at, created_at, priority, type, body, source)
    VALUES (:id, :v_now, :v_now, 0, :p_type, :p_body, imq_consumer_name(NULL));
    IF (v_grouped = 1) THEN
        INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:p_type, '', :id, 0);
    INSERT INTO mq_ready (type, priority, run_at, id, attempts, lane)
    VALUES (:p_type, 0, :v_now, :id, 0, IIF(:v_fair = 1, '32768', NULL));
    EXECUTE PROCEDURE imq_wake(p_type);
    SUSPEND;
END
