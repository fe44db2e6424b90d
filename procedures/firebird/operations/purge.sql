-- purge: delete the messages of one queue and state, the oldest of dead and archived ones first.
-- Arguments:   p_type (1 to 200 characters), p_state (N: ready and delayed; E: dead; C: archived), p_before (UTC; only
--              those that died or were completed earlier, not with N; NULL: all), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected (messages deleted; repeat until it is 0), known (0: nothing has this name)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; skips messages that a claim is taking at this
--              moment
-- Example:     SELECT * FROM mq_purge('email', 'C', DATEADD(-90 DAY TO mq_utc_now()), 10000);

CREATE OR ALTER PROCEDURE mq_purge (
    p_type mq_argument,
    p_state mq_text,
    p_before timestamp = NULL,
    p_size bigint = NULL
)
RETURNS (affected bigint, known smallint)
AS
DECLARE v_state varchar(1) CHARACTER SET ASCII;
DECLARE v_grouped smallint;
DECLARE v_id bigint;
DECLARE v_gone integer; DECLARE v_size integer;
DECLARE v_before timestamp;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    -- LIKE, because = ignores trailing blanks.
    IF (p_state IS NULL OR p_state NOT LIKE 'N' AND p_state NOT LIKE 'E' AND p_state NOT LIKE 'C') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'state: must be N, E or C');
    IF (p_state LIKE 'N' AND p_before IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'before: must be NULL with state N');
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    v_state = p_state;
    v_size = COALESCE(p_size, 1000);
    v_before = COALESCE(p_before, CAST('9999-12-31 23:59:59.9999' AS timestamp));
    EXECUTE PROCEDURE imq_require_read_committed;
    known = imq_is_known(p_type);
    SELECT grouped FROM imq_policy(:p_type) INTO v_grouped;
    affected = 0;
    IF (p_state LIKE 'C') THEN
        FOR
            SELECT id FROM mq_archive WHERE type = :p_type AND completed_at < :v_before
            PLAN (mq_archive ORDER mq_archive_type)
            ORDER BY type, completed_at, id
            INTO v_id AS CURSOR c
        DO
        BEGIN
            BEGIN
                -- Not ROW_COUNT: in a loop over a cursor it counts all iterations.
                DELETE FROM mq_archive WHERE CURRENT OF c;
                affected = affected + 1;
                WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                    v_id = NULL;
            END
            IF (affected = v_size) THEN
                LEAVE;
        END
    ELSE
        FOR
            SELECT e.id
            FROM (
                SELECT o.id FROM mq_dead AS o WHERE o.type = IIF(:v_state = 'E', :p_type, NULL) AND o.died_at < :v_before
                PLAN (o ORDER mq_dead_age) ORDER BY o.type, o.died_at, o.id
            ) AS e
            UNION ALL
            SELECT g.id
            FROM (
                SELECT o.id FROM mq_grouped AS o WHERE o.type = IIF(:v_state = 'N' AND :v_grouped = 1, :p_type, NULL)
                PLAN (o ORDER mq_grouped_pk) ORDER BY o.type, o.group_key, o.id
            ) AS g
            UNION ALL
            SELECT r.id
            FROM (
                SELECT o.id FROM mq_ready AS o WHERE o.type = IIF(:v_state = 'N' AND :v_grouped = 0, :p_type, NULL)
                PLAN (o ORDER mq_ready_pk) ORDER BY o.type, o.priority, o.run_at, o.id
            ) AS r
            UNION ALL
            SELECT d.id
            FROM (
                SELECT o.id FROM mq_delayed AS o WHERE o.type = IIF(:v_state = 'N', :p_type, NULL)
                PLAN (o ORDER mq_delayed_due) ORDER BY o.type, o.run_at, o.id
            ) AS d
            INTO v_id
        DO
        BEGIN
            EXECUTE PROCEDURE imq_erase(p_type, v_id, v_state, v_grouped) RETURNING_VALUES v_gone;
            affected = affected + v_gone;
            IF (affected = v_size) THEN
                LEAVE;
        END
    SUSPEND;
END
