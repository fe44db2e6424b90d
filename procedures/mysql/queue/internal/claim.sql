-- claim: claim messages of a type, unless it is paused, and return them.
-- Arguments:   p_type, p_paused to p_group_rate_seconds (the policy), p_size, p_reader, p_lease_seconds
-- Returns:     the messages in order of priority, run_at, id; no rows when nothing is ready, no limit allows it, or the
--              queue is paused

DROP PROCEDURE IF EXISTS imq_claim;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_claim(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_paused tinyint,
    IN p_grouped tinyint,
    IN p_max_active int,
    IN p_rate int,
    IN p_rate_seconds int,
    IN p_group_rate int,
    IN p_group_rate_seconds int,
    IN p_size int,
    IN p_reader varchar(200) CHARACTER SET utf8mb4,
    IN p_lease_seconds int
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_size int DEFAULT p_size;
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    IF p_max_active + p_rate > 0 AND NOT p_paused THEN
        CALL imq_allowance(p_type, p_size, p_max_active, p_rate, p_rate_seconds, v_size);
    END IF;
    IF v_size > 0 AND NOT p_paused THEN
        CALL imq_pick(p_type, p_grouped, v_size, 0, v_items);
    END IF;
    IF v_items IS NULL THEN
        CALL imq_no_messages();
    ELSE
        CALL imq_hold(p_type, v_items, p_reader, p_lease_seconds);
        IF p_max_active + p_rate > 0 THEN
            CALL imq_spend(p_type, JSON_LENGTH(v_items), p_rate, p_rate_seconds);
        END IF;
        IF p_group_rate > 0 THEN
            CALL imq_spend_groups(p_type, v_items, p_group_rate, p_group_rate_seconds);
        END IF;
    END IF;
END//

DELIMITER ;
