-- redrive: retry dead letters, with their attempts reset to 0.
-- Arguments:   p_type (1 to 200 characters), p_id (NULL: all, those that died first, at most 10,000 per call), p_error
--              (an error as list_errors returns it; only dead letters with it are retried; NULL: any)
-- Returns:     count: messages that will be retried; repeat until it is 0
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; skips dead letters that another call is changing
-- Example:     CALL mq_redrive('email', NULL, NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_redrive(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_id bigint,
    IN p_error longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_error longtext CHARACTER SET utf8mb4 DEFAULT TRIM(TRAILING ' ' FROM p_error);
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_begin_call(1, v_own);
    IF p_id IS NULL AND p_error IS NOT NULL THEN
        -- Locks only dead letters with this error: two errors can be redriven at the same time.
        SELECT CONCAT('[', GROUP_CONCAT('[', e.id, ',0]' ORDER BY e.id), ']'), COUNT(*) INTO v_items, v_count
        FROM (
            SELECT id FROM mq_dead FORCE INDEX (dead_error)
            WHERE type = p_type AND error_group = v_error
            ORDER BY died_at, id LIMIT 10000 FOR UPDATE SKIP LOCKED
        ) AS e;
    ELSEIF p_id IS NULL THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', e.id, ',0]' ORDER BY e.id), ']'), COUNT(*) INTO v_items, v_count
        FROM (
            SELECT id FROM mq_dead FORCE INDEX (dead_age)
            WHERE type = p_type
            ORDER BY died_at, id LIMIT 10000 FOR UPDATE SKIP LOCKED
        ) AS e;
    ELSE
        SELECT CONCAT('[', GROUP_CONCAT('[', e.id, ',0]'), ']'), COUNT(*) INTO v_items, v_count
        FROM (
            SELECT id FROM mq_dead FORCE INDEX (PRIMARY) WHERE id = p_id AND type = p_type
                AND (v_error IS NULL OR error_group = v_error) FOR UPDATE SKIP LOCKED
        ) AS e;
    END IF;
    IF v_items IS NOT NULL THEN
        DELETE e FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = j.id;
        CALL imq_put_back(p_type, v_items);
    END IF;
    CALL imq_end_call(v_own);
    SELECT v_count AS count;
END
