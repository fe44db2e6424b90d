-- spend: record the messages that a claim of a type with limits has taken.
-- Arguments:   p_type, p_count, p_rate and p_rate_seconds (the policy; a rate of 0: no limit)
-- Transaction: joins the caller's, which has locked the row (allowance); a rollback returns the tokens
--
-- Called after the lease has begun: so the rate also holds for the claim times in mq_batch. Called also without a rate: in
-- a cluster, row locks are not visible on other nodes, and of two claims on different nodes one is refused at its commit.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_spend(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_count int, IN p_rate int, IN p_rate_seconds int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    -- Rounded up.
    DECLARE v_tokens_take bigint DEFAULT COALESCE((p_count * p_rate_seconds * 1000000 + p_rate - 1) DIV NULLIF(p_rate, 0), 0);
    UPDATE mq_limited
    SET full_at = GREATEST(LEAST(full_at, v_now + INTERVAL p_rate_seconds SECOND), v_now) + INTERVAL v_tokens_take MICROSECOND
    WHERE type = p_type;
END
