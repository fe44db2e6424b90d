-- redrive_all: retry the dead letters of a queue, or those with one error; their attempts are reset to 0.
-- Arguments:   p_type (1 to 200 characters), p_error (an error as list_errors returns it; only dead letters with it are
--              retried; NULL: any), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: messages that will be retried, those that died first; repeat until it is 0
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; skips dead letters that another call is changing
-- Example:     CALL mq_redrive_all('email', 'connection timed out after # s', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_redrive_all(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_error longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_error longtext CHARACTER SET utf8mb4 DEFAULT TRIM(TRAILING ' ' FROM p_error);
    DECLARE v_size int DEFAULT COALESCE(p_size, 1000);
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_begin_call(1, v_own);
    IF p_error IS NOT NULL THEN
        -- Locks only dead letters with this error: two errors can be redriven at the same time.
        SELECT CONCAT('[', GROUP_CONCAT('[', e.id, ',0]' ORDER BY e.id), ']'), COUNT(*) INTO v_items, v_count
        FROM (
            SELECT id FROM mq_dead FORCE INDEX (dead_error)
            WHERE type = p_type AND error_group = v_error
            ORDER BY died_at, id LIMIT v_size FOR UPDATE SKIP LOCKED
        ) AS e;
    ELSE
        SELECT CONCAT('[', GROUP_CONCAT('[', e.id, ',0]' ORDER BY e.id), ']'), COUNT(*) INTO v_items, v_count
        FROM (
            SELECT id FROM mq_dead FORCE INDEX (dead_age)
            WHERE type = p_type
            ORDER BY died_at, id LIMIT v_size FOR UPDATE SKIP LOCKED
        ) AS e;
    END IF;
    IF v_items IS NOT NULL THEN
        DELETE e FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = j.id;
        CALL imq_put_back(p_type, v_items);
    END IF;
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END
