-- erase_archived: delete archived messages of a queue, the oldest first.
-- Arguments:   p_before (only messages completed earlier), p_size (the most messages to delete)
-- Returns:     p_count: the number of deleted messages
-- Transaction: joins the caller's, which is READ COMMITTED; skips rows that another call is deleting

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_erase_archived(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_before datetime(6), IN p_size int, OUT p_count bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_keys longtext CHARACTER SET utf8mb4;
    SET p_count = 0;
    -- DELETE has no SKIP LOCKED: first lock the keys, then delete the rows.
    SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.month, ']'), ']') INTO v_keys
    FROM (
        SELECT id, month FROM mq_archive FORCE INDEX (archive_type)
        WHERE type = p_type AND completed_at < p_before AND attempts >= 0
        ORDER BY completed_at, id LIMIT p_size FOR UPDATE SKIP LOCKED
    ) AS k;
    IF v_keys IS NOT NULL THEN
        DELETE a FROM JSON_TABLE(v_keys, '$[*]' COLUMNS (id bigint PATH '$[0]', month tinyint PATH '$[1]')) AS j
        STRAIGHT_JOIN mq_archive AS a FORCE INDEX (PRIMARY) ON a.id = j.id AND a.month = j.month;
        SET p_count = ROW_COUNT();
    END IF;
END
