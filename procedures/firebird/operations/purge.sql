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
    v_size = COALESCE(p_size, 1000);
    v_before = COALESCE(p_before, CAST('9999-12-31 23:59:59.9999' AS timestamp));
    EXECUTE PROCEDURE imq_require_read_committed;
    known = imq_is_known(p_type);
    SELECT grouped FROM imq_policy(:p_type) INTO v_grouped;
    affected = 0;
    IF (p_state LIKE 'C') THEN
        EXECUTE PROCEDURE imq_erase_archived(p_type, v_before, v_size) RETURNING_VALUES affected;
    ELSE IF (p_state LIKE 'E') THEN
        FOR
            SELECT id FROM mq_dead WHERE type = :p_type AND died_at < :v_before
            PLAN (mq_dead ORDER mq_dead_age)
            ORDER BY type, died_at, id
            INTO v_id
        DO
        BEGIN
            EXECUTE PROCEDURE imq_erase(p_type, v_id, 'E', v_grouped) RETURNING_VALUES v_gone;
            affected = affected + v_gone;
            IF (affected = v_size) THEN
                LEAVE;
        END
    ELSE
    BEGIN
        IF (v_grouped = 1) THEN
            FOR
                SELECT id FROM mq_grouped WHERE type = :p_type
                PLAN (mq_grouped ORDER mq_grouped_pk)
                ORDER BY type, group_key, id
                INTO v_id
            DO
            BEGIN
                EXECUTE PROCEDURE imq_erase(p_type, v_id, 'N', v_grouped) RETURNING_VALUES v_gone;
                affected = affected + v_gone;
                IF (affected = v_size) THEN
                    LEAVE;
            END
        ELSE
            FOR
                SELECT id FROM mq_ready WHERE type = :p_type
                PLAN (mq_ready ORDER mq_ready_pk)
                ORDER BY type, priority, run_at, id
                INTO v_id
            DO
            BEGIN
                EXECUTE PROCEDURE imq_erase(p_type, v_id, 'N', v_grouped) RETURNING_VALUES v_gone;
                affected = affected + v_gone;
                IF (affected = v_size) THEN
                    LEAVE;
            END
        IF (affected < v_size) THEN
            FOR
                SELECT id FROM mq_delayed WHERE type = :p_type
                PLAN (mq_delayed ORDER mq_delayed_due)
                ORDER BY type, run_at, id
                INTO v_id
            DO
            BEGIN
                EXECUTE PROCEDURE imq_erase(p_type, v_id, 'N', v_grouped) RETURNING_VALUES v_gone;
                affected = affected + v_gone;
                IF (affected = v_size) THEN
                    LEAVE;
            END
    END
    SUSPEND;
END
