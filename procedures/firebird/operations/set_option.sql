-- set_option: change one setting of a queue.
-- Arguments:   p_type (1 to 200 characters), p_option (the name of a setting, see set_queue), p_value (NULL: the default)
-- Returns:     the settings of the queue after the call, paused, and known (0: nothing had this name before)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50004 queue_not_empty, 50009 area_missing: as set_queue
-- Transaction: as set_queue
-- Example:     SELECT * FROM mq_set_option('invoice', 'max_attempts', '5');
CREATE OR ALTER PROCEDURE mq_set_option (
    p_type mq_argument,
    p_option mq_text,
    p_value mq_text = NULL
)
RETURNS (
    type mq_name, lease_seconds integer, max_attempts integer, backoff_seconds integer, backoff_max_seconds integer,
    on_complete varchar(7) CHARACTER SET UTF8, ordered smallint, notify smallint, max_active integer, rate integer,
    rate_seconds integer, group_max_active integer, group_rate integer, group_rate_seconds integer, paused smallint,
    ring smallint, fair smallint, dead_stops_group smallint, known smallint
)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('option', LEFT(p_option, 1000), 0);
    p_value = CASE
        WHEN p_value IS NULL THEN 'null'
        WHEN p_value SIMILAR TO '!-?[0-9]{1,18}' ESCAPE '!' THEN p_value
        ELSE '"' || REPLACE(REPLACE(p_value, '\', '\\'), '"', '\"') || '"'
    END;
    FOR
        SELECT q.type, q.lease_seconds, q.max_attempts, q.backoff_seconds, q.backoff_max_seconds, q.on_complete, q.ordered, q.notify,
            q.max_active, q.rate, q.rate_seconds, q.group_max_active, q.group_rate, q.group_rate_seconds, q.paused, q.ring, q.fair,
            q.dead_stops_group, q.known
        FROM mq_set_queue(:p_type, '{"' || REPLACE(REPLACE(:p_option, '\', '\\'), '"', '\"') || '": ' || :p_value || '}') AS q
        INTO type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify, max_active, rate,
            rate_seconds, group_max_active, group_rate, group_rate_seconds, paused, ring, fair, dead_stops_group, known
    DO
        SUSPEND;
END
