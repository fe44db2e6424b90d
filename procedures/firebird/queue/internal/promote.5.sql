-- promote: move due messages from mq_delayed to mq_ready.
-- This variant for Firebird 5.0 and later replaces promote.sql: see take_ready.5.sql.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_promote (
    p_type mq_name, p_after timestamp, p_until timestamp, p_size integer, p_grouped smallint
)
RETURNS (moved integer, first_run_at timestamp)
AS
DECLARE v_id bigint;
DECLARE v_run_at timestamp;
DECLARE v_priority smallint; DECLARE v_attempts smallint;
DECLARE v_mine integer;
BEGIN
    moved = 0;
    FOR SELECT id, run_at, priority, attempts
        FROM mq_delayed
        WHERE type = :p_type AND run_at >= :p_after AND run_at <= :p_until
        PLAN (mq_delayed ORDER mq_delayed_due)
        ORDER BY type, run_at, id
        WITH LOCK SKIP LOCKED
        INTO v_id, v_run_at, v_priority, v_attempts AS CURSOR c
    DO
    BEGIN
        v_mine = 1;
        IF (p_grouped = 1) THEN
            EXECUTE PROCEDURE imq_promote_into_group(p_type, v_id, v_attempts) RETURNING_VALUES v_mine;
        IF (v_mine = 1) THEN
        BEGIN
            DELETE FROM mq_delayed WHERE CURRENT OF c;
            EXECUTE PROCEDURE imq_place_ready(p_type, v_priority, v_run_at, v_id, v_attempts) RETURNING_VALUES v_run_at;
            first_run_at = COALESCE(first_run_at, v_run_at);
            moved = moved + 1;
        END
        IF (moved >= p_size) THEN
            LEAVE;
    END
END^
SET TERM ; ^
