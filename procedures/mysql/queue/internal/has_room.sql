-- has_room: whether the limits of a type allow a claim to take a message now.
-- Returns:     p_room: 1 or 0; p_next_at: when the next token comes or the next lease expires; NULL when a message is
--              allowed now or the time is unknown

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_has_room(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_now datetime(6), OUT p_room tinyint, OUT p_next_at datetime(6)
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_max_active, v_rate, v_rate_seconds int;
    DECLARE v_full_at, v_first datetime(6);
    DECLARE v_tokens, v_active bigint DEFAULT 1;
    SET p_room = 1, p_next_at = NULL;
    SELECT max_active, rate, rate_seconds INTO v_max_active, v_rate, v_rate_seconds
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF v_rate > 0 THEN
        SELECT MAX(full_at) INTO v_full_at FROM mq_limited WHERE type = p_type;
        CALL imq_tokens(v_full_at, p_now, v_rate, v_rate_seconds, v_tokens);
        -- The next claim corrects a bucket whose full_at is more than one period ahead.
        IF v_tokens = 0 AND v_full_at <= p_now + INTERVAL v_rate_seconds SECOND THEN
            SET p_room = 0, p_next_at = v_full_at - INTERVAL v_rate_seconds SECOND
                + INTERVAL (v_rate_seconds * 1000000 + v_rate - 1) DIV v_rate MICROSECOND;
        END IF;
    END IF;
    IF v_max_active > 0 THEN
        -- An expired lease frees its places: the next claim rescues it.
        SELECT SUM(JSON_LENGTH(items)), MIN(lease_until) INTO v_active, v_first
        FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type AND lease_until > p_now;
        IF v_active >= v_max_active THEN
            SET p_room = 0, p_next_at = GREATEST(v_first, COALESCE(p_next_at, v_first));
        END IF;
    END IF;
END
