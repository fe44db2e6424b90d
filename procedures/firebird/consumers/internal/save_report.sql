-- save_report: write the row of a consumer; a report after silence or a stop starts its totals again.
-- Arguments:   p_type, p_consumer, p_now, p_completed, p_failed, p_dead (NULL: count them), p_busy_ms, p_waited_ms,
--              p_next_seconds (0: the consumer stops), p_handling
-- Returns:     dead: the number of dead letters since the last report
CREATE OR ALTER PROCEDURE imq_save_report (
    p_type mq_name, p_consumer mq_name, p_now timestamp, p_completed bigint, p_failed bigint, p_dead bigint,
    p_busy_ms bigint, p_waited_ms bigint, p_next_seconds bigint, p_handling varchar(4000) CHARACTER SET UTF8
)
RETURNS (dead bigint)
AS
-- The newest dead letters may not be committed yet: the next report counts them. The last report has no margin, because
-- all work is done by then.
DECLARE c_margin integer = 2;
-- A stopped consumer's row is kept for an hour: without a row, none of its dead letters of this hour is counted yet.
DECLARE c_unseen integer = 1;
DECLARE c_most integer = 10000;
DECLARE v_others integer;
DECLARE v_until timestamp; DECLARE v_due timestamp; DECLARE v_counted_at timestamp;
BEGIN
    v_until = DATEADD(IIF(p_next_seconds = 0, 0, -c_margin) SECOND TO p_now);
    IF (p_next_seconds > 0) THEN
        v_due = DATEADD(2 * p_next_seconds SECOND TO p_now);
    -- Write the row before counting the dead letters: another process of this name cannot count the same ones.
    UPDATE mq_consumer AS c
    SET c.started_at = IIF(c.due_at >= :p_now, c.started_at, :p_now),
        c.reported_at = :p_now,
        c.due_at = :v_due,
        c.handling = :p_handling,
        -- Reports of earlier minutes pass zero: they count nothing, and the next count must not miss what died before.
        c.counted_at = IIF(:p_dead = 0, c.counted_at, MAXVALUE(c.counted_at, :v_until)),
        c.completed = :p_completed + IIF(c.due_at >= :p_now, c.completed, 0),
        c.failed = :p_failed + IIF(c.due_at >= :p_now, c.failed, 0),
        c.dead = COALESCE(:p_dead, 0) + IIF(c.due_at >= :p_now, c.dead, 0),
        c.busy_ms = :p_busy_ms + IIF(c.due_at >= :p_now, c.busy_ms, 0),
        c.waited_ms = :p_waited_ms + IIF(c.due_at >= :p_now, c.waited_ms, 0)
    WHERE c.type = :p_type AND c.consumer = :p_consumer
    RETURNING OLD.counted_at
    INTO v_counted_at;
    IF (v_counted_at IS NULL) THEN
    BEGIN
        SELECT COUNT(*) FROM (SELECT 1 AS one FROM mq_consumer AS c WHERE c.type = :p_type ROWS :c_most) AS c INTO v_others;
        IF (v_others = c_most) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'consumer: this queue has ' || c_most || ' consumers already');
        v_counted_at = DATEADD(-c_unseen HOUR TO p_now);
        INSERT INTO mq_consumer (started_at, reported_at, due_at, counted_at, completed, failed, dead, busy_ms, waited_ms, handling,
            type, consumer)
        VALUES (:p_now, :p_now, :v_due, IIF(:p_dead = 0, :v_counted_at, :v_until), :p_completed, :p_failed, COALESCE(:p_dead, 0),
            :p_busy_ms, :p_waited_ms, :p_handling, :p_type, :p_consumer);
    END
    dead = COALESCE(p_dead, 0);
    IF (p_dead IS NULL) THEN
    BEGIN
        SELECT COUNT(*)
        FROM mq_dead AS d
        WHERE d.type = :p_type AND d.died_at > :v_counted_at AND d.died_at <= :v_until AND d.consumer = :p_consumer
        PLAN (d INDEX (mq_dead_age))
        INTO dead;
        IF (dead > 0) THEN
            UPDATE mq_consumer AS c SET c.dead = c.dead + :dead WHERE c.type = :p_type AND c.consumer = :p_consumer;
    END
END
