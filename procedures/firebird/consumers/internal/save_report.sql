-- save_report: write the row of a consumer; a report after silence or a stop starts its totals again at zero.
-- Arguments:   p_type, p_reader, p_now, p_completed, p_failed, p_dead (NULL: count them), p_busy_ms, p_waited_ms,
--              p_next_seconds (0: the consumer stops)
-- Returns:     dead: the number of dead letters since the last report
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_save_report('email', 'worker-1', mq_utc_now(), 120, 3, NULL, 9500, 400, 10)
--              RETURNING_VALUES v_dead;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_save_report (
    p_type mq_name,
    p_reader mq_name,
    p_now timestamp,
    p_completed bigint,
    p_failed bigint,
    p_dead bigint,
    p_busy_ms bigint,
    p_waited_ms bigint,
    p_next_seconds bigint
)
RETURNS (
    dead bigint
)
AS
-- The newest dead letters may not be committed yet: the next report counts them. The last report has no margin, because
-- all work is done by then.
DECLARE c_margin integer = 2;
DECLARE v_until timestamp;
DECLARE v_due timestamp;
DECLARE v_goes_on smallint = 0;
DECLARE v_counted_at timestamp;
BEGIN
    v_until = DATEADD(IIF(p_next_seconds = 0, 0, -c_margin) SECOND TO p_now);
    IF (p_next_seconds > 0) THEN
        v_due = DATEADD(2 * p_next_seconds SECOND TO p_now);
    -- Write the row before counting the dead letters: another process of this name cannot count the same ones.
    UPDATE mq_consumer AS c
    SET c.started_at = IIF(c.due_at >= :p_now, c.started_at, :p_now),
        c.reported_at = :p_now,
        c.due_at = :v_due,
        c.counted_at = IIF(c.due_at >= :p_now, MAXVALUE(c.counted_at, :v_until), :p_now),
        c.completed = :p_completed + IIF(c.due_at >= :p_now, c.completed, 0),
        c.failed = :p_failed + IIF(c.due_at >= :p_now, c.failed, 0),
        c.dead = COALESCE(:p_dead, 0) + IIF(c.due_at >= :p_now, c.dead, 0),
        c.busy_ms = :p_busy_ms + IIF(c.due_at >= :p_now, c.busy_ms, 0),
        c.waited_ms = :p_waited_ms + IIF(c.due_at >= :p_now, c.waited_ms, 0)
    WHERE c.type = :p_type AND c.reader = :p_reader
    RETURNING IIF(OLD.due_at >= :p_now, 1, 0), OLD.counted_at
    INTO v_goes_on, v_counted_at;
    IF (v_counted_at IS NULL) THEN
        INSERT INTO mq_consumer (started_at, reported_at, due_at, counted_at, completed, failed, dead, busy_ms, waited_ms, type,
            reader)
        VALUES (:p_now, :p_now, :v_due, :p_now, :p_completed, :p_failed, COALESCE(:p_dead, 0), :p_busy_ms, :p_waited_ms, :p_type,
            :p_reader);
    dead = COALESCE(p_dead, 0);
    IF (p_dead IS NULL AND v_goes_on = 1) THEN
    BEGIN
        SELECT COUNT(*)
        FROM (
            SELECT d.reader FROM mq_dead AS d
            WHERE d.type = :p_type AND d.died_at > :v_counted_at AND d.died_at <= :v_until
            PLAN (d ORDER mq_dead_age)
            ORDER BY d.type, d.died_at, d.id
            ROWS 10000
        ) AS d
        WHERE d.reader = :p_reader
        INTO dead;
        IF (dead > 0) THEN
            UPDATE mq_consumer AS c SET c.dead = c.dead + :dead WHERE c.type = :p_type AND c.reader = :p_reader;
    END
END^

SET TERM ; ^
