-- queue_stats: count each queue's messages by state; above 10,000 ready, delayed and dead are estimates.
-- Arguments:   p_type (1 to 200 characters; NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds (NULL: none is ready), estimated (1: ready,
--              delayed or dead is above 10,000; such a number is an estimate), paused (1: claims return nothing)
-- Errors:      50002 invalid_argument
-- Transaction: reads only, at most 20,001 index entries per number, and all claims; see
--              estimate
-- Example:     SELECT * FROM mq_queue_stats;
--
-- A call of policy per type would take longer than all the rest.

CREATE OR ALTER PROCEDURE mq_queue_stats (
    p_type mq_argument = NULL
)
RETURNS (
    type mq_name, ready bigint, delayed bigint, active bigint, expired bigint, dead bigint,
    oldest_ready_seconds double precision, estimated smallint, paused smallint
)
AS
DECLARE c_cap integer = 10000;
DECLARE v_now timestamp; DECLARE v_oldest_ready timestamp; DECLARE v_oldest_grouped timestamp;
DECLARE v_oldest_due timestamp;
DECLARE v_by_group smallint; DECLARE v_default_by_group smallint; DECLARE v_default_paused smallint;
DECLARE v_ready bigint; DECLARE v_grouped bigint; DECLARE v_due bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE imq_require_record_version;
    v_now = mq_utc_now();
    SELECT grouped, paused FROM imq_policy('') INTO v_default_by_group, v_default_paused;
    FOR
        SELECT c.type, SUM(IIF(c.what = 'ready', c.first_count, 0)), SUM(IIF(c.what = 'grouped', c.first_count, 0)),
            SUM(IIF(c.what = 'delayed', c.first_count, 0)), SUM(IIF(c.what = 'delayed', c.second_count, 0)),
            SUM(IIF(c.what = 'batch', c.first_count, 0)), SUM(IIF(c.what = 'batch', c.second_count, 0)),
            SUM(IIF(c.what = 'dead', c.first_count, 0)), MIN(IIF(c.what = 'ready', c.oldest, NULL)),
            MIN(IIF(c.what = 'grouped', c.oldest, NULL)), MIN(IIF(c.what = 'delayed', c.oldest, NULL)),
            MAX(IIF(c.what = 'policy', c.first_count, NULL)), MAX(IIF(c.what = 'policy', c.second_count, NULL))
        FROM (
            SELECT type, 'ready' AS what, first_count, second_count, oldest
            FROM imq_count_types('ready', :p_type, :c_cap, :v_now)
            UNION ALL
            SELECT type, 'grouped', first_count, second_count, oldest
            FROM imq_count_types('grouped', :p_type, :c_cap, :v_now)
            UNION ALL
            SELECT type, 'delayed', first_count, second_count, oldest
            FROM imq_count_types('delayed', :p_type, :c_cap, :v_now)
            UNION ALL
            SELECT type, 'batch', first_count, second_count, oldest FROM imq_count_types('batch', :p_type, :c_cap, :v_now)
            UNION ALL
            SELECT type, 'dead', first_count, second_count, oldest FROM imq_count_types('dead', :p_type, :c_cap, :v_now)
            UNION ALL
            -- A type with only a policy also has a row, and so has a type that is given by name.
            SELECT type, 'policy', grouped, paused, NULL FROM mq_queue WHERE CHAR_LENGTH(type) > 0 AND :p_type IS NULL
            UNION ALL
            SELECT type, 'policy', grouped, paused, NULL FROM mq_queue WHERE type = :p_type
            UNION ALL
            SELECT CAST(:p_type AS mq_name), 'asked', 0, 0, NULL FROM rdb$database WHERE :p_type IS NOT NULL
        ) AS c
        GROUP BY c.type
        ORDER BY c.type
        INTO type, v_ready, v_grouped, v_due, delayed, active, expired, dead, v_oldest_ready, v_oldest_grouped, v_oldest_due,
            v_by_group, paused
    DO
    BEGIN
        v_by_group = COALESCE(v_by_group, v_default_by_group);
        paused = COALESCE(paused, v_default_paused);
        -- In a queue with groups the rows of mq_ready are tickets.
        ready = IIF(v_by_group = 1, v_grouped, v_ready);
        IF (ready > c_cap) THEN
            EXECUTE PROCEDURE imq_estimate(IIF(v_by_group = 1, 'grouped', 'ready'), type, v_now) RETURNING_VALUES ready;
        IF (v_due > c_cap) THEN
            EXECUTE PROCEDURE imq_estimate('due', type, v_now) RETURNING_VALUES v_due;
        ready = ready + v_due;
        IF (delayed > c_cap) THEN
            EXECUTE PROCEDURE imq_estimate('delayed', type, v_now) RETURNING_VALUES delayed;
        IF (dead > c_cap) THEN
            EXECUTE PROCEDURE imq_estimate('dead', type, v_now) RETURNING_VALUES dead;
        oldest_ready_seconds = MAXVALUE(DATEDIFF(MILLISECOND
            FROM COALESCE(IIF(v_by_group = 1, v_oldest_grouped, v_oldest_ready), v_oldest_due) TO v_now), 0) / 1e3;
        estimated = IIF(MAXVALUE(ready, delayed, dead) > c_cap, 1, 0);
        SUSPEND;
    END
END
