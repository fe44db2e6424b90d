-- redrive: retry dead letters, with their attempts reset to 0.
-- Arguments:   p_type (1 to 200 characters), p_id (NULL: all, those that died first, at most 10,000 per call), p_error
--              (an error as list_errors returns it; only dead letters with it are retried, among the newest 10,000; NULL:
--              any)
-- Returns:     count: messages that will be retried; repeat until it is 0
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; skips dead letters that another call is changing
-- Example:     CALL mq_redrive('email', NULL, NULL);

DROP PROCEDURE IF EXISTS mq_redrive;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_redrive(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_id bigint,
    IN p_error longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_items, v_found longtext CHARACTER SET utf8mb4;
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL mq_require_name('type', p_type, 0);
    CALL mq_begin_call(1, v_own);
    IF p_error IS NOT NULL THEN
        -- Locks only dead letters with this error: two errors can be redriven at the same time.
        SELECT CONCAT('[', GROUP_CONCAT('[', d.id, ',"', d.died_at, '"]'), ']') INTO v_found
        FROM (
            SELECT id, died_at, error FROM mq_error_group WHERE type = p_type ORDER BY died_at DESC, id DESC LIMIT 10000
        ) AS d
        WHERE d.error = p_error AND (p_id IS NULL OR d.id = p_id);
        SELECT CONCAT('[', GROUP_CONCAT('[', e.id, ',0]' ORDER BY e.id), ']'), COUNT(*)
        INTO v_items, v_count
        FROM (
            SELECT d.id
            FROM JSON_TABLE(COALESCE(v_found, '[]'), '$[*]' COLUMNS (id bigint PATH '$[0]', died_at datetime(6) PATH '$[1]')) AS j
            STRAIGHT_JOIN mq_dead AS d FORCE INDEX (PRIMARY) ON d.id = j.id
            WHERE d.died_at = j.died_at
            FOR UPDATE /*!80000 OF d */ SKIP LOCKED
        ) AS e;
    ELSEIF p_id IS NULL THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', e.id, ',0]' ORDER BY e.id), ']'), COUNT(*)
        INTO v_items, v_count
        FROM (
            SELECT id FROM mq_dead FORCE INDEX (dead_age)
            WHERE type = p_type
            ORDER BY died_at, id
            LIMIT 10000
            FOR UPDATE SKIP LOCKED
        ) AS e;
    ELSE
        SELECT CONCAT('[', GROUP_CONCAT('[', e.id, ',0]'), ']'), COUNT(*)
        INTO v_items, v_count
        FROM (
            SELECT id FROM mq_dead FORCE INDEX (PRIMARY) WHERE id = p_id AND type = p_type FOR UPDATE SKIP LOCKED
        ) AS e;
    END IF;
    IF v_items IS NOT NULL THEN
        DELETE e
        FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = j.id;
        CALL mq_put_back(p_type, v_items);
    END IF;
    CALL mq_end_call(v_own);
    SELECT v_count AS count;
END//

DELIMITER ;
