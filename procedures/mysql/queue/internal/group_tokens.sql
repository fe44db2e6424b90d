-- group_tokens: how many tokens the bucket of a group has.
-- Arguments:   p_type, p_group, p_rate, p_rate_seconds (the policy)
-- Returns:     p_tokens
-- Transaction: joins the caller's, which has locked the group's stripe

DROP PROCEDURE IF EXISTS imq_group_tokens;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_group_tokens(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_group varchar(200) CHARACTER SET utf8mb4,
    IN p_rate int,
    IN p_rate_seconds int,
    OUT p_tokens bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_now, v_full_at datetime(6);
    SELECT MAX(full_at) INTO v_full_at FROM mq_bucket FORCE INDEX (PRIMARY) WHERE type = p_type AND group_key = p_group;
    SET v_now = UTC_TIMESTAMP(6);
    IF v_full_at > v_now + INTERVAL p_rate_seconds SECOND THEN
        -- The clock was set back, or the period is shorter now: the bucket is empty and starts to fill now.
        SET v_full_at = v_now + INTERVAL p_rate_seconds SECOND;
        UPDATE mq_bucket SET full_at = v_full_at WHERE type = p_type AND group_key = p_group;
    END IF;
    CALL imq_tokens(v_full_at, v_now, p_rate, p_rate_seconds, p_tokens);
END//

DELIMITER ;
