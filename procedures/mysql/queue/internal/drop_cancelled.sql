-- drop_cancelled: of messages whose attempt has ended, but not as done, delete those that were cancelled.
-- Arguments:   p_type, p_items (a JSON array of arrays that begin with an id)
-- Transaction: waits for a transaction that is cancelling one of them, or has saved a step of it; none can until the caller's ends

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_drop_cancelled(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_ids longtext CHARACTER SET utf8mb4;
    DECLARE v_count bigint;
    -- Not in a WHERE: the server would unlock the other rows.
    SELECT CONCAT('[', GROUP_CONCAT(IF(m.cancelled_at IS NULL, NULL, CONCAT('[', m.id, ']'))), ']') INTO v_ids
    FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
    STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
    FOR UPDATE /*!80000 OF m */;
    IF v_ids IS NOT NULL THEN
        CALL imq_erase(p_type, v_ids, 'A', v_count);
    END IF;
END
