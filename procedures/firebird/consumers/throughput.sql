-- throughput: what consumers report per minute and type: messages sent, completed, failed and dead.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_since (UTC, a time in the first minute; NULL: an hour ago;
--              reports are kept for 24 hours)
-- Returns:     type, minute_at, sent (messages sent in this minute that have been claimed), completed, failed (attempts,
--              including those that made a dead letter), dead, waited_ms (from sending to the first attempt), busy_ms (in
--              handlers); no row for a minute without figures; a sum ends at 10^18
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT minute_at, completed, busy_ms / MAXVALUE(completed, 1) FROM mq_throughput('email');

CREATE OR ALTER PROCEDURE mq_throughput (
    p_type mq_argument = NULL,
    p_since timestamp = NULL
)
RETURNS (
    type mq_name, minute_at timestamp, sent bigint, completed bigint, failed bigint, dead bigint, waited_ms bigint,
    busy_ms bigint
)
AS
DECLARE c_base timestamp = TIMESTAMP '2000-01-01 00:00:00';
DECLARE v_since timestamp;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE imq_require_record_version;
    -- Includes the minute of p_since.
    v_since = DATEADD(DATEDIFF(MINUTE FROM c_base TO COALESCE(p_since, DATEADD(-1 HOUR TO mq_utc_now()))) MINUTE TO c_base);
    -- As double precision: the reports of many consumers may add up to more than a bigint.
    FOR
        SELECT t.type, t."MINUTE",
            CAST(MINVALUE(SUM(CAST(t.sent AS double precision)), 1e18) AS bigint),
            CAST(MINVALUE(SUM(CAST(t.completed AS double precision)), 1e18) AS bigint),
            CAST(MINVALUE(SUM(CAST(t.failed AS double precision)), 1e18) AS bigint),
            CAST(MINVALUE(SUM(CAST(t.dead AS double precision)), 1e18) AS bigint),
            CAST(MINVALUE(SUM(CAST(t.waited_ms AS double precision)), 1e18) AS bigint),
            CAST(MINVALUE(SUM(CAST(t.busy_ms AS double precision)), 1e18) AS bigint)
        FROM mq_report AS t
        WHERE t."MINUTE" >= :v_since AND (:p_type IS NULL OR t.type = :p_type)
        GROUP BY t.type, t."MINUTE"
        ORDER BY t.type, t."MINUTE"
        INTO type, minute_at, sent, completed, failed, dead, waited_ms, busy_ms
    DO
        SUSPEND;
END
