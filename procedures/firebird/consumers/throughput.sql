-- throughput: what consumers report per minute and type: messages sent, completed, failed and dead.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_since (UTC, a time in the first minute; NULL: an hour ago;
--              reports are kept for 24 hours), p_size (1 to 10,000; NULL: 10,000), p_after_minute and p_after_type (the
--              last row of the page before; NULL: from the first)
-- Returns:     one row per minute and type, by minute and type: type, minute, sent (messages sent in this minute that have been claimed), completed, failed (attempts,
--              including those that made a dead letter), dead, waited_ms (from sending to the first attempt), busy_ms (in
--              handlers), each at most 9,223,372,036,854,775,807; no row for a minute without figures
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     SELECT "MINUTE", completed, busy_ms / MAXVALUE(completed, 1) FROM mq_throughput('email');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_throughput (
    p_type mq_argument = NULL,
    p_since timestamp = NULL,
    p_size bigint = NULL,
    p_after_minute timestamp = NULL,
    p_after_type mq_argument = NULL
)
RETURNS (
    type mq_name,
    "MINUTE" timestamp,
    sent bigint,
    completed bigint,
    failed bigint,
    dead bigint,
    waited_ms bigint,
    busy_ms bigint
)
AS
DECLARE c_base timestamp = TIMESTAMP '2000-01-01 00:00:00';
DECLARE c_most bigint = 9223372036854775807;
DECLARE v_since timestamp;
DECLARE v_type mq_name;
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE mq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE mq_require_name('after_type', p_after_type, 1);
    EXECUTE PROCEDURE mq_require_record_version;
    -- Includes the minute of p_since.
    v_since = DATEADD(DATEDIFF(MINUTE FROM c_base TO COALESCE(p_since, DATEADD(-1 HOUR TO mq_utc_now()))) MINUTE TO c_base);
    v_since = MAXVALUE(v_since, COALESCE(p_after_minute, v_since));
    v_type = COALESCE(p_after_type, '');
    p_size = COALESCE(p_size, 10000);
    FOR
        -- From Firebird 4 on these sums are wider than a bigint.
        SELECT t.type, t."MINUTE", MINVALUE(SUM(t.sent), :c_most), MINVALUE(SUM(t.completed), :c_most),
            MINVALUE(SUM(t.failed), :c_most), MINVALUE(SUM(t.dead), :c_most), MINVALUE(SUM(t.waited_ms), :c_most),
            MINVALUE(SUM(t.busy_ms), :c_most)
        FROM mq_report AS t
        WHERE t."MINUTE" >= :v_since AND (:p_after_minute IS NULL OR t."MINUTE" > :p_after_minute OR t.type > :v_type)
            AND (:p_type IS NULL OR t.type = :p_type)
        GROUP BY t."MINUTE", t.type
        ORDER BY t."MINUTE", t.type
        ROWS :p_size
        INTO type, "MINUTE", sent, completed, failed, dead, waited_ms, busy_ms
    DO
        SUSPEND;
END^

SET TERM ; ^
