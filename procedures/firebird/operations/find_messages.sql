-- find_messages: find messages in any state by id, dedup_key or group_key.
-- Arguments:   p_type (1 to 200 characters; NULL: any, allowed only with p_id); one of p_id, p_dedup_key and p_group_key,
--              which are used in this order; p_size (1 to 10,000; NULL: 20), p_body_length (characters of each body, 0 to
--              16,777,216; NULL: all)
-- Returns:     up to p_size messages with the columns of peek, ordered by id. Archived messages are found only by p_id.
--              p_group_key finds all due messages of a queue with groups, and other messages among the first 10,000 of
--              their state
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT id, state, error FROM mq_find_messages('invoice', NULL, NULL, 'customer-17');

CREATE OR ALTER PROCEDURE mq_find_messages (
    p_type mq_argument = NULL,
    p_id bigint = NULL,
    p_dedup_key mq_argument = NULL,
    p_group_key mq_argument = NULL,
    p_size bigint = NULL,
    p_body_length bigint = NULL
)
RETURNS (
    id bigint, type mq_name, state varchar(1) CHARACTER SET UTF8, body mq_text, headers mq_text, priority integer,
    group_key mq_name, dedup_key mq_name, attempts integer, created_at timestamp, source mq_name, run_at timestamp,
    reader mq_name, batch_key mq_key, lease_until timestamp, changed_at timestamp, error mq_error
)
AS
DECLARE v_id bigint;
DECLARE v_group_key mq_name;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE imq_require_name('dedup_key', p_dedup_key, 1);
    EXECUTE PROCEDURE imq_require_name('group_key', p_group_key, 1);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_range('body_length', p_body_length, 0, 16777216);
    IF (p_id IS NULL AND p_type IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'type: must not be NULL unless id is given');
    IF (p_id IS NULL AND p_dedup_key IS NULL AND p_group_key IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL unless dedup_key or group_key is given');
    EXECUTE PROCEDURE imq_require_record_version;
    p_size = COALESCE(p_size, 20);
    IF (p_id IS NULL AND p_dedup_key IS NULL) THEN
        v_group_key = p_group_key;
    FOR
        SELECT :p_id FROM rdb$database WHERE :p_id IS NOT NULL
        UNION ALL
        SELECT d.id FROM mq_dedup AS d WHERE d.type = :p_type AND d.dedup_key = :p_dedup_key AND :p_id IS NULL
        UNION ALL
        SELECT g.id FROM imq_ids_of_group(:p_type, :v_group_key, :p_size) AS g
        INTO v_id
    DO
        FOR
            SELECT s.id, s.type, s.state, IIF(OCTET_LENGTH(s.body) > :p_body_length, LEFT(s.body, :p_body_length), s.body), s.headers,
                s.priority, s.group_key, s.dedup_key, s.attempts, s.created_at, s.source, IIF(s.state = 'N', s.run_at, NULL),
                s.reader, s.batch_key, s.lease_until, s.changed_at, s.error
            FROM mq_message_state AS s
            WHERE s.id = :v_id AND (:p_type IS NULL OR s.type = :p_type)
                AND (:p_dedup_key IS NULL OR s.dedup_key = :p_dedup_key) AND (:p_group_key IS NULL OR s.group_key = :p_group_key)
            INTO id, type, state, body, headers, priority, group_key, dedup_key, attempts, created_at, source, run_at, reader,
                batch_key, lease_until, changed_at, error
        DO
            SUSPEND;
END
