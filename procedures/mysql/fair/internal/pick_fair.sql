-- pick_fair: take ready messages of a fair queue: of the first priority one from each lane in turn, then of the next one.
-- Returns:     p_items: a JSON array of [id, number of this attempt, priority, run_at, lane] in the order in which they were
--              taken; NULL for none
--
-- A claim starts after the lane where the last one stopped, goes round once, and takes the first message of each lane, or as
-- many as the group's weight. If another claim has locked that message, it has given this lane its turn, so the claim
-- passes over the lane. Only when a whole round found too few messages, it takes others of the same lanes. The positions
-- are kept in mq_ring. Before it locks what it has read, a claim looks whether another one has since got further.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_pick_fair(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_left int DEFAULT p_size;
    DECLARE v_weight int;
    DECLARE v_priority int DEFAULT -32769;
    DECLARE v_some tinyint DEFAULT 1;
    DECLARE v_found longtext CHARACTER SET utf8mb4;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_some = 0;
    SET p_items = NULL;
    SELECT group_weight INTO v_weight FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    priorities: LOOP
        SELECT priority INTO v_priority FROM mq_ready FORCE INDEX (PRIMARY)
        WHERE type = p_type AND priority > v_priority AND attempts >= 0
        ORDER BY priority, lane, run_at, id
        LIMIT 1;
        IF NOT v_some THEN
            LEAVE priorities;
        END IF;
        CALL imq_take_lanes(p_type, v_priority, v_left, v_weight, v_found);
        IF v_found IS NOT NULL THEN
            SET v_left = v_left - JSON_LENGTH(v_found), p_items = IF(p_items IS NULL, v_found,
                CONCAT(LEFT(p_items, CHAR_LENGTH(p_items) - 1), ',', SUBSTRING(v_found, 2)));
        END IF;
        IF v_left = 0 THEN
            LEAVE priorities;
        END IF;
    END LOOP;
END
