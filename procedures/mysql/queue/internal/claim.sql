-- claim: claim messages of a type that is not paused, and return them.
-- Arguments:   p_type, p_size, p_reader, p_lease_seconds (NULL: the policy's)
-- Returns:     the messages in order of priority, run_at, id; no rows when nothing is ready or the queue is paused
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     CALL mq_claim('email', 10, 'worker-1', 60);

DROP PROCEDURE IF EXISTS mq_claim;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_claim(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_reader varchar(200) CHARACTER SET utf8mb4,
    IN p_lease_seconds int
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_paused, v_grouped tinyint;
    DECLARE v_seconds, v_max_active, v_rate, v_rate_seconds, v_group_rate, v_group_rate_seconds int;
    DECLARE v_size int DEFAULT p_size;
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    SELECT paused, grouped, COALESCE(p_lease_seconds, lease_seconds), max_active, rate, rate_seconds, group_rate,
        group_rate_seconds
    INTO v_paused, v_grouped, v_seconds, v_max_active, v_rate, v_rate_seconds, v_group_rate, v_group_rate_seconds
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF v_max_active + v_rate > 0 AND NOT v_paused THEN
        CALL mq_allowance(p_type, p_size, v_max_active, v_rate, v_rate_seconds, v_size);
    END IF;
    IF v_size > 0 AND NOT v_paused THEN
        CALL mq_pick(p_type, v_grouped, v_size, 0, v_items);
    END IF;
    IF v_items IS NULL THEN
        CALL mq_no_messages();
    ELSE
        CALL mq_hold(p_type, v_items, p_reader, v_seconds);
        IF v_max_active + v_rate > 0 THEN
            CALL mq_spend(p_type, JSON_LENGTH(v_items), v_rate, v_rate_seconds);
        END IF;
        IF v_group_rate > 0 THEN
            CALL mq_spend_groups(p_type, v_items, v_group_rate, v_group_rate_seconds);
        END IF;
    END IF;
END//

DELIMITER ;
