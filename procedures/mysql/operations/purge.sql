-- purge: delete the messages of one type and state, at most 10,000 per call.
-- Arguments:   p_type (1 to 200 characters), p_state (N: ready and delayed; E: dead; C: archived)
-- Returns:     count: messages deleted; repeat until it is 0
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; skips messages that a claim is taking at this moment
-- Example:     CALL mq_purge('email', 'E');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_purge(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_state longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_left int DEFAULT 10000;
    DECLARE v_grouped, v_own tinyint;
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
    END IF;
    CALL imq_begin_call(1, v_own);
    SELECT grouped INTO v_grouped FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF p_state = 'C' THEN
        CALL imq_erase_archived(p_type, NULL, v_left, v_count);
    ELSEIF p_state = 'E' THEN
        SELECT GROUP_CONCAT('[', k.id, ']') INTO v_ids
        FROM (
            SELECT id FROM mq_dead FORCE INDEX (dead_age)
            WHERE type = p_type
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
    SELECT v_count AS count;
END
