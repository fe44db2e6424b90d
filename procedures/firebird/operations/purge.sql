-- purge: delete the messages of one type and state, at most 10,000 per call.
-- Arguments:   p_type (1 to 200 characters), p_state (N: ready and delayed; E: dead; C: archived)
-- Returns:     count: messages deleted; repeat until it is 0
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; skips messages that a claim is taking at this
--              moment
-- Example:     SELECT * FROM mq_purge('email', 'E');

CREATE OR ALTER PROCEDURE mq_purge (
    p_type mq_argument,
    p_state mq_text
)
RETURNS ("COUNT" bigint)
AS
DECLARE v_grouped smallint;
DECLARE v_id bigint;
DECLARE v_gone integer;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    -- LIKE, because = ignores trailing blanks.
    IF (p_state IS NULL OR p_state NOT LIKE 'N' AND p_state NOT LIKE 'E' AND p_state NOT LIKE 'C') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'state: must be N, E or C');
    EXECUTE PROCEDURE imq_require_read_committed;
    SELECT grouped FROM imq_policy(:p_type) INTO v_grouped;
    "COUNT" = 0;
    IF (p_state LIKE 'C') THEN
        EXECUTE PROCEDURE imq_erase_archived(p_type, NULL, 10000) RETURNING_VALUES "COUNT";
    ELSE IF (p_state LIKE 'E') THEN
        FOR
            SELECT id FROM mq_dead WHERE type = :p_type
            PLAN (mq_dead ORDER mq_dead_age)
            ORDER BY type, died_at, id
            INTO v_id
        DO
        BEGIN
            EXECUTE PROCEDURE imq_erase(p_type, v_id, 'E', v_grouped) RETURNING_VALUES v_gone;
            "COUNT" = "COUNT" + v_gone;
            IF ("COUNT" = 10000) THEN
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
                "COUNT" = "COUNT" + v_gone;
                IF ("COUNT" = 10000) THEN
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
                "COUNT" = "COUNT" + v_gone;
                IF ("COUNT" = 10000) THEN
                    LEAVE;
            END
        IF ("COUNT" < 10000) THEN
            FOR
                SELECT id FROM mq_delayed WHERE type = :p_type
                PLAN (mq_delayed ORDER mq_delayed_due)
                ORDER BY type, run_at, id
                INTO v_id
            DO
            BEGIN
                EXECUTE PROCEDURE imq_erase(p_type, v_id, 'N', v_grouped) RETURNING_VALUES v_gone;
                "COUNT" = "COUNT" + v_gone;
                IF ("COUNT" = 10000) THEN
                    LEAVE;
            END
    END
    SUSPEND;
END
