-- policy: the settings of a type, or the defaults when it has no settings: one row.
CREATE OR ALTER PROCEDURE imq_policy (p_type mq_name)
RETURNS (
    lease_seconds integer, max_attempts integer, backoff_seconds integer, backoff_max_seconds integer,
    on_complete varchar(7) CHARACTER SET ASCII, ordered smallint, ring smallint, fair smallint, notify smallint,
    max_active integer, rate integer, rate_seconds integer, group_max_active integer, group_rate integer,
    group_rate_seconds integer, grouped smallint, dead_stops_group smallint, paused smallint
)
AS
BEGIN
    WHILE (paused IS NULL AND p_type IS NOT NULL) DO
    BEGIN
        SELECT lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, ring, fair, notify,
            max_active, rate, rate_seconds, group_max_active, group_rate, group_rate_seconds, grouped, dead_stops_group,
            paused
        FROM mq_queue WHERE type = :p_type
        INTO lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, ring, fair, notify,
            max_active, rate, rate_seconds, group_max_active, group_rate, group_rate_seconds, grouped, dead_stops_group,
            paused;
        p_type = NULLIF('', p_type);
    END
    SUSPEND;
END
