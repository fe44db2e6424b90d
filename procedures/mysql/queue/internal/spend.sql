-- spend: a claim of a type with limits notes how many messages it took.
-- Arguments:   p_type, p_count, p_rate and p_rate_seconds (the policy; a rate of 0: no limit)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which has the row since allowance; a rollback gives the tokens back
-- Example:     CALL mq_spend('email', 10, 100, 60);
--
-- Called when the lease has begun: by the times of the claims, too, no more than the rate pass. Also without a rate: of two
-- claims on different nodes of a cluster, whose row locks are not seen on the other, one is refused at its commit.

DROP PROCEDURE IF EXISTS mq_spend;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_spend(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_count int,
    IN p_rate int,
    IN p_rate_seconds int
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_tokens_take bigint DEFAULT 0;
    IF p_rate > 0 THEN
        -- Rounded up.
        SET v_tokens_take = (p_count * p_rate_seconds * 1000000 + p_rate - 1) DIV p_rate;
    END IF;
    UPDATE mq_limited
    SET full_at = GREATEST(LEAST(full_at, v_now + INTERVAL p_rate_seconds SECOND), v_now) + INTERVAL v_tokens_take MICROSECOND
    WHERE type = p_type;
END//

DELIMITER ;
