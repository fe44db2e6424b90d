-- purge: delete the messages of one queue and state, the oldest of dead and archived ones first.
-- Arguments:   p_type (1 to 200 characters), p_state (N: ready and delayed; E: dead; C: archived), p_before (UTC; only
--              those that died or were completed earlier, not with N; NULL: all), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected (messages deleted; repeat until it is 0), known (0: nothing has this name)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; skips messages that a claim is taking at this moment
-- Example:     CALL mq_purge('email', 'C', UTC_TIMESTAMP() - INTERVAL 90 DAY, 10000);
--
-- A monthly partition of the archive with only older messages can be emptied at once with ALTER TABLE mq_archive TRUNCATE
-- PARTITION archive_01. This call does not do it, because it would commit the caller's transaction.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_purge(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_state longtext CHARACTER SET utf8mb4,
    IN p_before datetime(6),
    IN p_size bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_left int;
    DECLARE v_before datetime(6) DEFAULT COALESCE(p_before, '9999-12-31 23:59:59.999999');
    DECLARE v_grouped, v_own, v_known tinyint;
    DECLARE v_ids, v_more longtext CHARACTER SET utf8mb4;
    DECLARE v_count bigint DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    -- Compared as bytes: a collation may equate 'n' or 'N ' with N.
    IF p_state IS NULL OR CAST(p_state AS binary) NOT IN ('N', 'E', 'C') THEN
        CALL imq_raise_error('invalid_argument', 'state: must be N, E or C');
    ELSEIF p_state = 'N' AND p_before IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', 'before: must be NULL with state N');
    END IF;
    CALL imq_require_range('size', p_size, 1, 10000);
    SET v_left = COALESCE(p_size, 1000);
    CALL imq_begin_call(1, v_own);
    CALL imq_is_known(p_type, v_known);
    SELECT grouped INTO v_grouped FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF p_state = 'C' THEN
        -- DELETE has no SKIP LOCKED: first lock the keys, then delete the rows.
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.month, ']'), ']') INTO v_more
        FROM (
            SELECT id, month FROM mq_archive FORCE INDEX (archive_type)
            WHERE type = p_type AND completed_at < v_before AND attempts >= 0
            ORDER BY completed_at, id LIMIT v_left FOR UPDATE SKIP LOCKED
        ) AS k;
        IF v_more IS NOT NULL THEN
            DELETE a FROM JSON_TABLE(v_more, '$[*]' COLUMNS (id bigint PATH '$[0]', month tinyint PATH '$[1]')) AS j
            STRAIGHT_JOIN mq_archive AS a FORCE INDEX (PRIMARY) ON a.id = j.id AND a.month = j.month;
            SET v_count = ROW_COUNT();
        END IF;
    ELSEIF p_state = 'E' THEN
        SELECT GROUP_CONCAT('[', k.id, ']') INTO v_ids
        FROM (
            SELECT id FROM mq_dead FORCE INDEX (dead_age)
            WHERE type = p_type AND died_at < v_before
            ORDER BY died_at, id LIMIT v_left FOR UPDATE SKIP LOCKED
        ) AS k;
    ELSE
        IF v_grouped THEN
            SELECT GROUP_CONCAT('[', k.id, ']'), v_left - COUNT(*) INTO v_ids, v_left
            FROM (
                SELECT id FROM mq_grouped FORCE INDEX (PRIMARY)
                WHERE type = p_type
                ORDER BY group_key, id LIMIT v_left FOR UPDATE SKIP LOCKED
            ) AS k;
        ELSE
            SELECT GROUP_CONCAT('[', k.id, ']'), v_left - COUNT(*) INTO v_ids, v_left
            FROM (
                SELECT id FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type
                ORDER BY priority, lane, run_at, id LIMIT v_left FOR UPDATE SKIP LOCKED
            ) AS k;
        END IF;
        SELECT GROUP_CONCAT('[', k.id, ']') INTO v_more
        FROM (
            SELECT id FROM mq_delayed FORCE INDEX (PRIMARY)
            WHERE type = p_type
            ORDER BY run_at, id LIMIT v_left FOR UPDATE SKIP LOCKED
        ) AS k;
        SET v_ids = NULLIF(CONCAT_WS(',', v_ids, v_more), '');
    END IF;
    IF v_ids IS NOT NULL THEN
        CALL imq_erase(p_type, CONCAT('[', v_ids, ']'), p_state, v_count);
    END IF;
    CALL imq_end_call(v_own);
    SELECT v_count AS affected, v_known AS known;
END
