-- settled_place: return the order value up to which rows of a table without a status may be claimed.
-- Arguments:   p_batch_key (from imq_open_claim), p_highest (the highest order value now; NULL: it was not read)
-- Returns:     p_settled: the highest order value of late_seconds ago, NULL when there is none yet; p_wanted: 1 when the
--              caller must call again with p_highest

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_settled_place(
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, IN p_highest longtext CHARACTER SET utf8mb4,
    OUT p_settled longtext CHARACTER SET utf8mb4, OUT p_wanted tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now, v_seen datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_late int;
    SELECT b.name, COALESCE(p.late_seconds, 0) INTO v_name, v_late
    FROM mq_polled_batch AS b JOIN mq_polled AS p ON p.name = b.name WHERE b.batch_key = p_batch_key;
    -- Delete marks in the future: the clock was set back, and they would stop all claims until it catches up.
    DELETE FROM mq_polled_mark WHERE name = v_name AND seen_at > v_now + INTERVAL 1 SECOND;
    SELECT MAX(seen_at) INTO v_seen FROM mq_polled_mark WHERE name = v_name;
    SET p_wanted = p_highest IS NULL AND (v_late = 0 OR v_seen IS NULL OR
            v_seen <= v_now - INTERVAL GREATEST(1, v_late DIV 10) SECOND),
        p_settled = NULL;
    IF v_late = 0 THEN
        SET p_settled = p_highest;
    ELSEIF NOT p_wanted THEN
        IF p_highest IS NOT NULL THEN
            INSERT INTO mq_polled_mark (name, seen_at, place) VALUES (v_name, v_now, p_highest)
            ON DUPLICATE KEY UPDATE place = p_highest;
        END IF;
        SELECT MAX(seen_at) INTO v_seen FROM mq_polled_mark WHERE name = v_name AND seen_at <= v_now - INTERVAL v_late SECOND;
        SELECT MAX(place) INTO p_settled FROM mq_polled_mark WHERE name = v_name AND seen_at = v_seen;
        DELETE FROM mq_polled_mark WHERE name = v_name AND seen_at < v_seen;
    END IF;
END
