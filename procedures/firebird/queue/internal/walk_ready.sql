-- walk_ready: ready messages in claim order, as they are seen, without touching them.
-- Arguments:   p_type, p_priority, p_run_at and p_id (where to begin; p_run_at NULL: after that priority), p_end (the priority
--              before which to end)
-- Returns:     id, attempt (the number of the attempt that would begin), priority, run_at and place (where the row is)
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT id FROM mq_walk_ready('email', -32769, NULL, NULL, 32768);
--
-- The bounds have both ends: of a part of an index's columns the engine knows no bound that leaves its value out, and '< 0'
-- would read all of 0.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_walk_ready (
    p_type mq_name,
    p_priority integer,
    p_run_at timestamp,
    p_id bigint,
    p_end integer
)
RETURNS (
    id bigint,
    attempt smallint,
    priority smallint,
    run_at timestamp,
    place char(8) CHARACTER SET OCTETS
)
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
        -- The next time that differs from it.
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
END^

SET TERM ; ^
