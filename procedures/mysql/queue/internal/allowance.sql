-- allowance: how many messages the limits of a type allow a claim to take now; other claims of the type get none until this
--            transaction ends.
-- Arguments:   p_type, p_size (messages that the claim wants), p_max_active, p_rate and p_rate_seconds (the policy; 0: no
--              limit)
-- Returns:     p_allowed: 0 to p_size; also 0 while another claim of the type is in progress
-- Transaction: joins the caller's, which keeps the type's row of mq_limited locked until it ends; never waits
--
-- The call counts after it has locked the row, so it sees everything that the previous claim committed. A token bucket is
-- stored as one time, full_at: when it is full again. Times are whole microseconds; rounding never allows an extra message.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_allowance(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_max_active int, IN p_rate int,
    IN p_rate_seconds int, OUT p_allowed int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now, v_full_at datetime(6);
    DECLARE v_active, v_expired, v_rescued bigint;
    DECLARE v_tokens bigint DEFAULT p_size;
    SET p_allowed = 0;
    SELECT MAX(l.full_at) INTO v_full_at FROM (SELECT full_at FROM mq_limited WHERE type = p_type FOR UPDATE SKIP LOCKED) AS l;
    IF v_full_at IS NOT NULL THEN
        SET v_now = UTC_TIMESTAMP(6), p_allowed = p_size;
        IF p_rate > 0 AND v_full_at > v_now + INTERVAL p_rate_seconds SECOND THEN
            -- The clock was set back, or the period is shorter now: the bucket is empty and starts to fill now.
            SET v_full_at = v_now + INTERVAL p_rate_seconds SECOND;
            UPDATE mq_limited SET full_at = v_full_at WHERE type = p_type;
        END IF;
        IF p_rate > 0 THEN
            CALL imq_tokens(v_full_at, v_now, p_rate, p_rate_seconds, v_tokens);
            SET p_allowed = LEAST(p_allowed, v_tokens);
        END IF;
        IF p_max_active > 0 AND p_allowed > 0 THEN
            -- A claim with an expired lease counts until it is rescued: its consumer may still finish or extend it.
            SELECT COALESCE(SUM(JSON_LENGTH(items)), 0), COALESCE(SUM(lease_until <= v_now), 0) INTO v_active, v_expired
            FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type;
            IF v_active >= p_max_active AND v_expired > 0 THEN
                CALL imq_rescue(p_type, 20, v_rescued);
                SELECT COALESCE(SUM(JSON_LENGTH(items)), 0) INTO v_active
                FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type;
            END IF;
            SET p_allowed = LEAST(p_allowed, GREATEST(p_max_active - v_active, 0));
        END IF;
    END IF;
END
