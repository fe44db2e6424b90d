-- tokens: how many whole tokens a bucket has, and when it gets the next one.
-- Arguments:   p_full_at (when the bucket is full again; NULL: it is full), p_now, p_rate (tokens of a full bucket, and
--              tokens gained per p_rate_seconds), p_rate_seconds
-- Returns:     p_tokens: 0 to p_rate
--
-- A bucket gains p_rate tokens every p_rate_seconds.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_tokens(
    IN p_full_at datetime(6), IN p_now datetime(6), IN p_rate int, IN p_rate_seconds int, OUT p_tokens bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_period bigint DEFAULT p_rate_seconds * 1000000;
    DECLARE v_missing bigint DEFAULT GREATEST(COALESCE(TIMESTAMPDIFF(MICROSECOND, p_now, p_full_at), 0), 0);
    SET p_tokens = (v_period - LEAST(v_missing, v_period)) * p_rate DIV v_period;
END
