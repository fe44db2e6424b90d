-- claim: claim messages of a type, unless it is paused, and return them.
-- Arguments:   p_type, p_paused to p_group_rate_seconds (the policy), p_size, p_reader, p_lease_seconds
-- Returns:     the messages in order of priority, run_at, id; no rows when nothing is ready, no limit allows it, or the
--              queue is paused
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     CALL mq_claim('email', 0, 0, 0, 0, 1, 0, 1, 10, 'worker-1', 60);

DROP PROCEDURE IF EXISTS mq_claim;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_claim(
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
        CALL mq_allowance(p_type, p_size, p_max_active, p_rate, p_rate_seconds, v_size);
    END IF;
    IF v_size > 0 AND NOT p_paused THEN
        CALL mq_pick(p_type, p_grouped, v_size, 0, v_items);
    END IF;
    IF v_items IS NULL THEN
        CALL mq_no_messages();
    ELSE
        CALL mq_hold(p_type, v_items, p_reader, p_lease_seconds);
        IF p_max_active + p_rate > 0 THEN
            CALL mq_spend(p_type, JSON_LENGTH(v_items), p_rate, p_rate_seconds);
        END IF;
        IF p_group_rate > 0 THEN
            CALL mq_spend_groups(p_type, v_items, p_group_rate, p_group_rate_seconds);
        END IF;
    END IF;
END//

DELIMITER ;
