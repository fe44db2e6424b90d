-- list_consumers: list the consumers with their start, their speed, and whether they still report.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_size (1 to 10,000; NULL: 20)
-- Returns:     up to p_size rows, one per consumer and type, the silent ones first, then the working and the stopped
--              ones, by type and consumer: consumer, type, status (working; silent: its report is overdue; stopped), started_at, reported_at; since started_at: completed, failed, dead, busy_ms, waited_ms;
--              of the last full minute: rate_per_minute and busy (the average number of running handlers);
--              handling (the messages that it handled at its last report, a JSON object per line; NULL: none)
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT consumer, status, rate_per_minute FROM mq_list_consumers('email');

CREATE OR ALTER PROCEDURE mq_list_consumers (
    p_type mq_argument = NULL,
    p_size bigint = NULL
)
RETURNS (
    consumer mq_name, type mq_name, status varchar(7) CHARACTER SET UTF8, started_at timestamp, reported_at timestamp,
    completed bigint, failed bigint, dead bigint, busy_ms bigint, waited_ms bigint, rate_per_minute double precision,
    busy double precision, handling varchar(4000) CHARACTER SET UTF8
)
AS
DECLARE c_base timestamp = TIMESTAMP '2000-01-01 00:00:00';
DECLARE v_now timestamp; DECLARE v_minute timestamp;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE imq_require_record_version;
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    v_now = mq_utc_now();
    v_minute = DATEADD(DATEDIFF(MINUTE FROM c_base TO v_now) - 1 MINUTE TO c_base);
    FOR
        SELECT c.consumer, c.type,
            TRIM(DECODE(c.place, 1, 'silent', 2, 'working', 'stopped')),
            c.started_at, c.reported_at, c.completed, c.failed, c.dead, c.busy_ms, c.waited_ms,
            COALESCE(CAST(t.completed AS double precision) + t.failed, 0), COALESCE(t.busy_ms, 0) / 6e4, c.handling
        FROM (
            SELECT FIRST (COALESCE(:p_size, 20)) k.*
            FROM (
                SELECT m.*, CASE WHEN m.due_at < :v_now THEN 1 WHEN m.due_at IS NOT NULL THEN 2 ELSE 3 END AS place
                FROM mq_consumer AS m
                WHERE :p_type IS NULL OR m.type = :p_type
            ) AS k
            ORDER BY k.place, k.type, k.consumer
        ) AS c
        LEFT JOIN mq_report AS t ON t."MINUTE" = :v_minute AND t.type = c.type AND t.consumer = c.consumer
        ORDER BY c.place, c.type, c.consumer
        INTO consumer, type, status, started_at, reported_at, completed, failed, dead, busy_ms, waited_ms, rate_per_minute, busy,
            handling
    DO
        SUSPEND;
END
