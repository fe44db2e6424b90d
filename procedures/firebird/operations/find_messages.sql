-- find_messages: find messages in any state by id, dedup_key or group_key.
-- Arguments:   p_type (1 to 200 characters; NULL: any, allowed only with an id); p_filter, a flat JSON object with id,
--              dedup_key or group_key; p_size (1 to 10,000; NULL: 20), p_body_length (characters of each body, 0 to
--              16,777,216; NULL: all)
-- Returns:     up to p_size messages with the columns of peek that have all values of the filter, ordered by id. Archived
--              messages are found only by id. A group_key finds all due messages of a queue with groups, and other
--              messages among the first 10,000 of their state
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT id, state, error FROM mq_find_messages('invoice', '{"group_key": "customer-17"}');

CREATE OR ALTER PROCEDURE mq_find_messages (
    p_type mq_argument = NULL,
    p_filter mq_text = NULL,
    p_size bigint = NULL,
    p_body_length bigint = NULL
)
RETURNS (
    id bigint, type mq_name, state varchar(1) CHARACTER SET UTF8, body mq_text, headers mq_text, priority integer,
    group_key mq_name, dedup_key mq_name, attempts integer, created_at timestamp, source mq_name, run_at timestamp,
    consumer mq_name, batch_key mq_key, lease_until timestamp, changed_at timestamp, error mq_error
)
AS
DECLARE v_wanted bigint; DECLARE v_id bigint;
DECLARE v_dedup_key mq_argument; DECLARE v_group_key mq_argument; DECLARE v_group mq_name;
DECLARE v_option varchar(40) CHARACTER SET ASCII; DECLARE v_number bigint; DECLARE v_text mq_text;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    FOR
        SELECT o.name, o.number, o.text FROM imq_read_options(:p_filter, 'filter',
            ';id:-999999999999999999:999999999999999999;dedup_key:key;group_key:key;') AS o
        INTO v_option, v_number, v_text
    DO
    BEGIN
        v_wanted = IIF(v_option = 'id', v_number, v_wanted);
        v_dedup_key = IIF(v_option = 'dedup_key', v_text, v_dedup_key);
        v_group_key = IIF(v_option = 'group_key', v_text, v_group_key);
    END
    EXECUTE PROCEDURE imq_require_name('dedup_key', v_dedup_key, 1);
    EXECUTE PROCEDURE imq_require_name('group_key', v_group_key, 1);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_range('body_length', p_body_length, 0, 16777216);
    IF (v_wanted IS NULL AND p_type IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'type: must not be NULL unless the filter has an id');
    IF (v_wanted IS NULL AND v_dedup_key IS NULL AND v_group_key IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'filter: must have an id, a dedup_key or a group_key');
    EXECUTE PROCEDURE imq_require_record_version;
    p_size = COALESCE(p_size, 20);
    IF (v_wanted IS NULL AND v_dedup_key IS NULL) THEN
        v_group = v_group_key;
    FOR
        SELECT :v_wanted FROM rdb$database WHERE :v_wanted IS NOT NULL
        UNION ALL
        SELECT d.id FROM mq_dedup AS d WHERE d.type = :p_type AND d.dedup_key = :v_dedup_key AND :v_wanted IS NULL
        UNION ALL
        SELECT g.id FROM imq_ids_of_group(:p_type, :v_group, :p_size) AS g
        INTO v_id
    DO
        FOR
            SELECT s.id, s.type, s.state, IIF(OCTET_LENGTH(s.body) > :p_body_length, LEFT(s.body, :p_body_length), s.body), s.headers,
                s.priority, s.group_key, s.dedup_key, s.attempts, s.created_at, s.source, IIF(s.state = 'N', s.run_at, NULL),
                s.consumer, s.batch_key, s.lease_until, s.changed_at, s.error
            FROM mq_message_state AS s
            WHERE s.id = :v_id AND (:p_type IS NULL OR s.type = :p_type)
                AND (:v_dedup_key IS NULL OR s.dedup_key = :v_dedup_key) AND (:v_group_key IS NULL OR s.group_key = :v_group_key)
            INTO id, type, state, body, headers, priority, group_key, dedup_key, attempts, created_at, source, run_at, consumer,
                batch_key, lease_until, changed_at, error
        DO
            SUSPEND;
END
