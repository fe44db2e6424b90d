-- settle_rows: apply the changes listed in mq_polled_write: to the user's table first, then to the entries.
-- Arguments:   p_name; in mq_polled_write: id, kind (D: done; F: failed, with retry and error; R: released; T: retry of a
--              dead row), retry (see read_outcomes), error
-- Returns:     done, failed (to be retried), dead, gone, back (released, or dead rows to be retried)
CREATE OR ALTER PROCEDURE imq_settle_rows (p_name mq_name)
RETURNS (done bigint, failed bigint, dead bigint, gone bigint, back bigint)
AS
DECLARE v_max integer; DECLARE v_retry integer;
DECLARE v_now timestamp;
DECLARE v_id bigint;
DECLARE v_kind varchar(1) CHARACTER SET ASCII; DECLARE v_outcome varchar(1) CHARACTER SET ASCII;
DECLARE v_error mq_error;
DECLARE v_attempts smallint; DECLARE v_active smallint;
DECLARE v_delay double precision;
BEGIN
    done = 0;
    failed = 0;
    dead = 0;
    gone = 0;
    back = 0;
    v_now = mq_utc_now();
    SELECT max_attempts FROM mq_polled WHERE name = :p_name INTO v_max;
    EXECUTE PROCEDURE imq_mark_rows(p_name);
    FOR SELECT w.id, w.kind, w.retry, w.outcome, w.error, p.attempts, p.active
        FROM mq_polled_write AS w JOIN mq_polled_row AS p ON p.id = w.id
        ORDER BY w.id
        INTO v_id, v_kind, v_retry, v_outcome, v_error, v_attempts, v_active
    DO
    BEGIN
        IF (v_outcome = 'G') THEN
        BEGIN
            DELETE FROM mq_polled_row WHERE id = :v_id;
            IF (v_kind <> 'T') THEN
                gone = gone + 1;
        END
        ELSE IF (v_kind = 'D') THEN
        BEGIN
            DELETE FROM mq_polled_row WHERE id = :v_id;
            done = done + 1;
        END
        ELSE IF (v_kind = 'F' AND (v_retry = -1 OR v_attempts >= v_max)) THEN
        BEGIN
            -- active stays 1 when error_value could not be written: the row must not be claimed, although its status may be
            -- ready.
            UPDATE mq_polled_row
            SET state = 'E', batch_key = NULL, run_at = :v_now, error = :v_error,
                active = IIF(:v_outcome = 'X', 1, 0)
            WHERE id = :v_id;
            dead = dead + 1;
        END
        ELSE IF (v_kind = 'F') THEN
        BEGIN
            -- Jitter: half to all of the delay. Rows that failed together are then not retried together.
            v_delay = COALESCE(v_retry, MINVALUE(3600, 5 * POWER(2e0, MINVALUE(v_attempts - 1, 40))) * (0.5e0 + RAND() / 2));
            UPDATE mq_polled_row
            SET state = 'N', batch_key = NULL, run_at = DATEADD(CAST(:v_delay * 1000 AS bigint) MILLISECOND TO :v_now),
                error = :v_error, active = IIF(:v_outcome = 'X', active, 0)
            WHERE id = :v_id;
            failed = failed + 1;
        END
        ELSE IF (v_kind = 'R') THEN
        BEGIN
            UPDATE mq_polled_row
            SET state = 'N', batch_key = NULL, run_at = :v_now, attempts = attempts - 1,
                active = IIF(:v_outcome = 'X', active, 0)
            WHERE id = :v_id;
            back = back + 1;
        END
        ELSE IF (v_outcome IS DISTINCT FROM 'X') THEN
        BEGIN
            UPDATE mq_polled_row SET state = 'N', run_at = :v_now, attempts = 0, active = 0 WHERE id = :v_id;
            back = back + 1;
        END
    END
    DELETE FROM mq_polled_write;
END
