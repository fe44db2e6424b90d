-- check_ready: whether a claim of a type would find a message now, as far as can be seen without locks.
-- Returns:     p_ready: 1 or 0; p_room_at: when the next token comes or the next lease expires, if a limit allows no message
--              now; p_scan_at: no claim rescues expired claims and sends due schedules before; p_next_at: when the next schedule
--              is due
--
-- Blocked groups are not checked: only a claim can know.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_check_ready(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_now datetime(6), OUT p_ready tinyint, OUT p_room_at datetime(6),
    OUT p_scan_at datetime(6), OUT p_next_at datetime(6)
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_max_active, v_rate, v_rate_seconds int;
    DECLARE v_full_at, v_first datetime(6);
    DECLARE v_tokens, v_active bigint;
    DECLARE v_schedules longtext CHARACTER SET utf8mb4;
    -- A claim rescues expired claims and sends due schedules only in a full scan: see pick. They are not ready before the
    -- next one.
    SELECT COALESCE(MAX(t.scan_at), '1000-01-01') INTO p_scan_at
    FROM (
        SELECT scanned_at + INTERVAL 1 SECOND AS scan_at FROM mq_mark FORCE INDEX (mark_newest)
        WHERE type = p_type ORDER BY n DESC LIMIT 1
    ) AS t
    WHERE t.scan_at BETWEEN p_now AND p_now + INTERVAL 6 SECOND;
    CALL imq_next_due(JSON_ARRAY(p_type), v_schedules);
    SET p_room_at = NULL, p_next_at = JSON_UNQUOTE(JSON_EXTRACT(v_schedules, '$[0][1]'));
    -- SELECT ... INTO reads without locks; a subquery in SET or IF locks.
    SELECT q.paused = 0 AND (
        EXISTS (SELECT 1 FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type = p_type)
        OR EXISTS (SELECT 1 FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = p_type AND d.run_at <= p_now
            AND d.attempts >= 0)
        OR p_scan_at <= p_now AND (
            EXISTS (SELECT 1 FROM mq_batch AS b FORCE INDEX (batch_lease) WHERE b.type = p_type
                AND b.lease_until <= p_now AND b.lease_seconds >= 0)
            OR COALESCE(p_next_at <= p_now, 0)
        )
    ), q.max_active, q.rate, q.rate_seconds
    INTO p_ready, v_max_active, v_rate, v_rate_seconds
    FROM mq_queue AS q WHERE q.type IN (p_type, '') ORDER BY q.type DESC LIMIT 1;
    IF p_ready AND v_rate > 0 THEN
        SELECT MAX(full_at) INTO v_full_at FROM mq_limited WHERE type = p_type;
        CALL imq_tokens(v_full_at, p_now, v_rate, v_rate_seconds, v_tokens);
        -- The next claim corrects a bucket whose full_at is more than one period ahead.
        IF v_tokens = 0 AND v_full_at <= p_now + INTERVAL v_rate_seconds SECOND THEN
            SET p_room_at = v_full_at - INTERVAL v_rate_seconds SECOND
                + INTERVAL (v_rate_seconds * 1000000 + v_rate - 1) DIV v_rate MICROSECOND;
        END IF;
    END IF;
    IF p_ready AND v_max_active > 0 THEN
        -- An expired lease frees its places: the next claim rescues it.
        SELECT SUM(JSON_LENGTH(items)), MIN(lease_until) INTO v_active, v_first
        FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type AND lease_until > p_now;
        IF v_active >= v_max_active THEN
            SET p_room_at = GREATEST(v_first, COALESCE(p_room_at, v_first));
        END IF;
    END IF;
    SET p_ready = p_ready AND p_room_at IS NULL;
END
