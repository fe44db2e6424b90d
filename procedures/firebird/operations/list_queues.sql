-- list_queues: list the policies of queues.
-- Arguments:   p_type (1 to 200 characters; NULL: all for which set_queue, pause or resume was called)
-- Returns:     one row per type with the columns of set_queue; a given p_type without a policy returns the defaults
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT type, max_attempts, on_complete, paused FROM mq_list_queues;

CREATE OR ALTER PROCEDURE mq_list_queues (
    p_type mq_argument = NULL
)
RETURNS (
    type mq_name, lease_seconds integer, max_attempts integer, backoff_seconds integer, backoff_max_seconds integer,
    on_complete varchar(7) CHARACTER SET UTF8, ordered smallint, notify smallint, max_active integer, rate integer,
    rate_seconds integer, group_max_active integer, group_rate integer, group_rate_seconds integer, paused smallint,
    ring smallint, fair smallint, dead_stops_group smallint
)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE imq_require_record_version;
    FOR
        SELECT q.type, p.lease_seconds, p.max_attempts, p.backoff_seconds, p.backoff_max_seconds, p.on_complete, p.ordered, p.notify,
            p.max_active, p.rate, p.rate_seconds, p.group_max_active, p.group_rate, p.group_rate_seconds, p.paused,
            p.ring, p.fair, p.dead_stops_group
        FROM (
            SELECT o.type FROM mq_queue AS o WHERE CHAR_LENGTH(o.type) > 0 AND :p_type IS NULL
            UNION ALL
            SELECT CAST(:p_type AS mq_name) FROM rdb$database WHERE :p_type IS NOT NULL
        ) AS q
        LEFT JOIN imq_policy(q.type) AS p ON 1 = 1
        ORDER BY q.type
        INTO type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify, max_active, rate,
            rate_seconds, group_max_active, group_rate, group_rate_seconds, paused, ring, fair, dead_stops_group
    DO
        SUSPEND;
END
