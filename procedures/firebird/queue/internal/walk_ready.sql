-- walk_ready: ready messages in claim order; nothing is changed or locked.
-- Arguments:   p_type, p_priority, p_run_at and p_id (where to start; p_run_at NULL: after that priority), p_end (stop
--              before this priority)
-- Returns:     id, attempt (the number of the next attempt), priority, run_at and place (the RDB$DB_KEY of the row)
--
-- Each range has both bounds as inclusive values: for a partial index key the engine has no exclusive bound, and '< 0'
-- would read all rows with 0.
CREATE OR ALTER PROCEDURE imq_walk_ready (
    p_type mq_name, p_priority integer, p_run_at timestamp, p_id bigint, p_end integer
)
RETURNS (id bigint, attempt smallint, priority smallint, run_at timestamp, place char(8) CHARACTER SET OCTETS)
AS
BEGIN
    IF (p_run_at IS NOT NULL) THEN
    BEGIN
        FOR SELECT r.id, r.attempts + 1, r.priority, r.run_at, r.RDB$DB_KEY
            FROM mq_ready AS r
            WHERE r.type = :p_type AND r.priority = :p_priority AND r.run_at = :p_run_at AND r.id >= :p_id
            PLAN (r ORDER mq_ready_pk)
            ORDER BY r.type, r.priority, r.run_at, r.id
            INTO id, attempt, priority, run_at, place
        DO
            SUSPEND;
        -- The smallest run_at after it.
        p_run_at = DATEADD(0.1 MILLISECOND TO p_run_at);
        FOR SELECT r.id, r.attempts + 1, r.priority, r.run_at, r.RDB$DB_KEY
            FROM mq_ready AS r
            WHERE r.type = :p_type AND r.priority = :p_priority AND r.run_at >= :p_run_at
            PLAN (r ORDER mq_ready_pk)
            ORDER BY r.type, r.priority, r.run_at, r.id
            INTO id, attempt, priority, run_at, place
        DO
            SUSPEND;
    END
    IF (p_end - p_priority > 1) THEN
        FOR SELECT r.id, r.attempts + 1, r.priority, r.run_at, r.RDB$DB_KEY
            FROM mq_ready AS r
            WHERE r.type = :p_type AND r.priority BETWEEN :p_priority + 1 AND :p_end - 1
            PLAN (r ORDER mq_ready_pk)
            ORDER BY r.type, r.priority, r.run_at, r.id
            INTO id, attempt, priority, run_at, place
        DO
            SUSPEND;
END
