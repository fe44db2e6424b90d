-- check_ready: whether a claim of a type would find a message now, as far as can be seen without locks.
-- Returns:     p_ready: 1 or 0; p_room_at: when a limit allows the next message, NULL when none prevents it; p_scan_at: no
--              claim rescues expired claims and sends due schedules before; p_next_at: when the next schedule is due
--
-- Blocked groups are not checked: only a claim can know.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_check_ready(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_now datetime(6), OUT p_ready tinyint, OUT p_room_at datetime(6),
    OUT p_scan_at datetime(6), OUT p_next_at datetime(6)
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_limited tinyint;
    -- A claim rescues expired claims and sends due schedules only in a full scan: see pick. They are not ready before the
    -- next one.
    SELECT COALESCE(MAX(t.scan_at), '1000-01-01') INTO p_scan_at
    FROM (
        SELECT scanned_at + INTERVAL 1 SECOND AS scan_at FROM mq_mark FORCE INDEX (mark_newest)
        WHERE type = p_type ORDER BY n DESC LIMIT 1
    ) AS t
    WHERE t.scan_at BETWEEN p_now AND p_now + INTERVAL 6 SECOND;
    CALL imq_next_due(p_type, p_next_at);
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
    ), q.max_active + q.rate > 0
    INTO p_ready, v_limited
    FROM mq_queue AS q WHERE q.type IN (p_type, '') ORDER BY q.type DESC LIMIT 1;
    SET p_room_at = NULL;
    IF p_ready AND v_limited THEN
        CALL imq_has_room(p_type, p_now, p_ready, p_room_at);
    END IF;
END
