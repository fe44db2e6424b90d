-- claim: claim messages of a type, unless it is paused, and return them.
-- Arguments:   p_lease_seconds (NULL: the queue's)

DROP PROCEDURE IF EXISTS imq_claim;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_claim(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_reader varchar(200) CHARACTER SET utf8mb4,
    IN p_lease_seconds int
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_paused, v_grouped, v_fair tinyint;
    DECLARE v_seconds, v_max_active, v_rate, v_rate_seconds int;
    DECLARE v_size int DEFAULT p_size;
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    SELECT paused, grouped, fair, COALESCE(p_lease_seconds, lease_seconds), max_active, rate, rate_seconds
    INTO v_paused, v_grouped, v_fair, v_seconds, v_max_active, v_rate, v_rate_seconds
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF v_max_active + v_rate > 0 AND NOT v_paused THEN
        CALL imq_allowance(p_type, p_size, v_max_active, v_rate, v_rate_seconds, v_size);
    END IF;
    IF v_size > 0 AND NOT v_paused THEN
        CALL imq_pick(p_type, v_grouped, v_fair, v_size, 0, NULL, v_items);
    END IF;
    IF v_items IS NULL THEN
        CALL imq_no_messages();
    ELSE
        CALL imq_hold(p_type, v_items, p_reader, v_seconds);
        IF v_max_active + v_rate > 0 THEN
            CALL imq_spend(p_type, JSON_LENGTH(v_items), v_rate, v_rate_seconds);
        END IF;
        IF v_grouped THEN
            CALL imq_spend_groups(p_type, v_items);
        END IF;
    END IF;
END//

DELIMITER ;
