-- send_message: send one message with all options.
-- Arguments:   p_type, p_body, p_run_at (UTC; NULL: now), p_priority (-32,768 to 32,767, smaller first; NULL: 0), p_group_key,
--              p_dedup_key, p_max_attempts (1 to 1,000; NULL: the queue's), p_headers (up to 64 KiB), p_source (NULL: the
--              application name); names and keys have 1 to 200 characters
-- Returns:     id, created (0: a live message has this type and dedup_key, and id is that one's)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent the same dedup_key, in a NO WAIT transaction
--              for two seconds, and then fails with isc_unique_key_violation
-- Example:     SELECT * FROM mq_send_message('email', '{}', DATEADD(1 HOUR TO mq_utc_now()), NULL, NULL, 'a-1');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_send_message (
    p_type mq_argument,
    p_body mq_text,
    p_run_at timestamp = NULL,
    p_priority bigint = NULL,
    p_group_key mq_argument = NULL,
    p_dedup_key mq_argument = NULL,
    p_max_attempts bigint = NULL,
    p_headers mq_text = NULL,
    p_source mq_argument = NULL
)
RETURNS (
    id bigint,
    created bigint
)
AS
DECLARE v_now timestamp;
DECLARE v_run_at timestamp;
DECLARE v_ordered smallint;
DECLARE v_notify smallint;
DECLARE c_seconds integer = 2;
DECLARE v_until timestamp;
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 0);
    IF (p_body IS NULL OR OCTET_LENGTH(p_body) > 16777216) THEN
        EXECUTE PROCEDURE mq_raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    v_now = mq_utc_now();
    v_run_at = COALESCE(p_run_at, v_now);
    IF (v_run_at > DATEADD(315360000 SECOND TO v_now)) THEN
        EXECUTE PROCEDURE mq_raise_error('invalid_argument', 'run_at: must be at most 315,360,000 seconds (ten years) ahead');
    EXECUTE PROCEDURE mq_require_range('priority', p_priority, -32768, 32767);
    EXECUTE PROCEDURE mq_require_name('group_key', p_group_key, 1);
    EXECUTE PROCEDURE mq_require_name('dedup_key', p_dedup_key, 1);
    EXECUTE PROCEDURE mq_require_range('max_attempts', p_max_attempts, 1, 1000);
    IF (OCTET_LENGTH(p_headers) > 65536) THEN
        EXECUTE PROCEDURE mq_raise_error('invalid_argument', 'headers: must be a text of up to 64 KiB (65,536 bytes)');
    EXECUTE PROCEDURE mq_require_name('source', p_source, 1);
    SELECT ordered, notify FROM mq_policy(:p_type) INTO v_ordered, v_notify;

    id = NEXT VALUE FOR mq_message_id;
    -- Not a check first: what is seen may be being finished, and the INSERT waits for that where the transaction may wait.
    WHILE (p_dedup_key IS NOT NULL AND created IS NULL) DO
    BEGIN
        INSERT INTO mq_dedup (type, dedup_key, id) VALUES (:p_type, :p_dedup_key, :id);
        created = 1;
    WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
        BEGIN
            SELECT d.id, 0 FROM mq_dedup AS d
            WHERE d.type = :p_type AND d.dedup_key = :p_dedup_key AND d.rdb$record_version = CURRENT_TRANSACTION
            INTO id, created;
            IF (created IS NULL) THEN
                IN AUTONOMOUS TRANSACTION DO
                    SELECT d.id, 0 FROM mq_dedup AS d WHERE d.type = :p_type AND d.dedup_key = :p_dedup_key INTO id, created;
            -- Neither ours nor committed: somebody is sending it, or finishing it. A WAIT transaction has waited for it.
            v_until = COALESCE(v_until, DATEADD(c_seconds SECOND TO mq_utc_now()));
            IF (created IS NULL AND mq_utc_now() NOT BETWEEN DATEADD(-c_seconds SECOND TO v_until) AND v_until) THEN
                EXCEPTION;
        END
    END
    created = COALESCE(created, 1);

    IF (created = 1) THEN
    BEGIN
        INSERT INTO mq_message (id, run_at, created_at, priority, max_attempts, type, body, headers, group_key, dedup_key, source)
        VALUES (:id, :v_run_at, :v_now, COALESCE(:p_priority, 0), :p_max_attempts, :p_type, :p_body, :p_headers, :p_group_key,
            :p_dedup_key, mq_reader_name(:p_source));
        IF (v_run_at > v_now) THEN
            INSERT INTO mq_delayed (id, type, run_at, priority, attempts)
            VALUES (:id, :p_type, :v_run_at, COALESCE(:p_priority, 0), 0);
        ELSE
        BEGIN
            IF (v_ordered = 1) THEN
                INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:p_type, COALESCE(:p_group_key, ''), :id, 0);
            INSERT INTO mq_ready (type, priority, run_at, id, attempts)
            VALUES (:p_type, COALESCE(:p_priority, 0), :v_run_at, :id, 0);
            IF (v_run_at < v_now) THEN
                EXECUTE PROCEDURE mq_lower_mark(p_type);
        END
        IF (v_notify = 1) THEN
            EXECUTE PROCEDURE mq_wake(p_type);
    END
    SUSPEND;
END^

SET TERM ; ^
