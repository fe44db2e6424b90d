-- wait_result: what a wait for a type returns.
-- Arguments:   p_type, p_now, p_ready, p_room_at, p_scan_at, p_next_at (in: when the next schedule is due), all from check_ready
-- Returns:     p_next_at and p_reason, as from wait_for_message

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_wait_result(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_now datetime(6), IN p_ready tinyint, IN p_room_at datetime(6),
    IN p_scan_at datetime(6), INOUT p_next_at datetime(6), OUT p_reason varchar(7) CHARACTER SET ascii
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_known tinyint;
    SET p_reason = 'ready';
    IF NOT p_ready THEN
        SELECT CASE
            WHEN q.paused THEN 'paused'
            WHEN q.max_active + q.rate > 0 AND (
                EXISTS (SELECT 1 FROM mq_ready AS r FORCE INDEX (PRIMARY) WHERE r.type = p_type)
                OR EXISTS (SELECT 1 FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = p_type AND d.run_at <= p_now)
            ) THEN 'limited'
            WHEN q.grouped AND EXISTS (SELECT 1 FROM mq_grouped AS g FORCE INDEX (PRIMARY) WHERE g.type = p_type)
                THEN IF(q.ordered, 'blocked', 'limited')
            WHEN p_next_at IS NOT NULL OR EXISTS (SELECT 1 FROM mq_delayed AS d FORCE INDEX (PRIMARY) WHERE d.type = p_type) THEN 'delayed'
        END INTO p_reason
        FROM mq_queue AS q WHERE q.type IN (p_type, '') ORDER BY q.type DESC LIMIT 1;
        IF p_reason IS NULL THEN
            CALL imq_is_known(p_type, v_known);
            SET p_reason = IF(v_known, 'empty', 'unknown');
        END IF;
    END IF;
    SELECT COALESCE(p_room_at, MIN(t.due)) INTO p_next_at
    FROM (
        (SELECT run_at AS due FROM mq_delayed FORCE INDEX (PRIMARY) WHERE type = p_type ORDER BY run_at, id LIMIT 1)
        UNION ALL
        (SELECT GREATEST(lease_until, p_scan_at) FROM mq_batch FORCE INDEX (batch_lease) WHERE type = p_type ORDER BY lease_until LIMIT 1)
        UNION ALL
        (SELECT GREATEST(p_next_at, p_scan_at))
    ) AS t;
END
