-- save_report: write the row of a consumer; a report after silence or a stop starts its totals again at zero.
-- Arguments:   p_type, p_reader, p_now, p_completed, p_failed, p_dead (NULL: count them), p_busy_ms, p_waited_ms,
--              p_next_seconds (0: the consumer stops)
-- Returns:     p_counted: the number of dead letters since the last report
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     CALL mq_save_report('email', 'worker-1', UTC_TIMESTAMP(6), 120, 3, NULL, 9500, 400, 10, v_dead);

DROP PROCEDURE IF EXISTS mq_save_report;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_save_report(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_reader varchar(200) CHARACTER SET utf8mb4,
    IN p_now datetime(6),
    IN p_completed bigint,
    IN p_failed bigint,
    IN p_dead bigint,
    IN p_busy_ms bigint,
    IN p_waited_ms bigint,
    IN p_next_seconds bigint,
    OUT p_counted bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- The newest dead letters may not be committed yet: the next report counts them. The last report has no margin,
    -- because all work is done by then.
    DECLARE c_margin int DEFAULT 2;
    DECLARE v_until datetime(6) DEFAULT p_now - INTERVAL IF(p_next_seconds = 0, 0, c_margin) SECOND;
    DECLARE v_due datetime(6) DEFAULT IF(p_next_seconds > 0, p_now + INTERVAL 2 * p_next_seconds SECOND, NULL);
    DECLARE v_counted_at datetime(6);
    DECLARE v_goes_on tinyint;
    -- Insert the row first, as a stopped consumer: at REPEATABLE READ, locking a missing row would lock a gap into which
    -- others insert.
    INSERT INTO mq_consumer (type, reader, started_at, reported_at, due_at, counted_at, completed, failed, dead, busy_ms, waited_ms)
    VALUES (p_type, p_reader, p_now, p_now, NULL, p_now, 0, 0, 0, 0, 0)
    ON DUPLICATE KEY UPDATE mq_consumer.started_at = mq_consumer.started_at;
    SELECT c.counted_at, COALESCE(c.due_at >= p_now, 0) INTO v_counted_at, v_goes_on
    FROM mq_consumer AS c FORCE INDEX (PRIMARY) WHERE c.type = p_type AND c.reader = p_reader FOR UPDATE;
    SET p_counted = COALESCE(p_dead, 0);
    IF p_dead IS NULL AND v_goes_on THEN
        SELECT COUNT(*) INTO p_counted
        FROM (
            SELECT d.reader FROM mq_dead AS d FORCE INDEX (dead_age)
            WHERE d.type = p_type AND d.died_at > v_counted_at AND d.died_at <= v_until
            ORDER BY d.died_at
            LIMIT 10000
        ) AS d
        WHERE d.reader = p_reader COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;
    END IF;
    UPDATE mq_consumer AS c FORCE INDEX (PRIMARY)
    SET c.started_at = IF(v_goes_on, c.started_at, p_now),
        c.reported_at = p_now,
        c.due_at = v_due,
        c.counted_at = IF(v_goes_on, GREATEST(c.counted_at, v_until), p_now),
        c.completed = p_completed + IF(v_goes_on, c.completed, 0),
        c.failed = p_failed + IF(v_goes_on, c.failed, 0),
        c.dead = p_counted + IF(v_goes_on, c.dead, 0),
        c.busy_ms = p_busy_ms + IF(v_goes_on, c.busy_ms, 0),
        c.waited_ms = p_waited_ms + IF(v_goes_on, c.waited_ms, 0)
    WHERE c.type = p_type AND c.reader = p_reader;
END//

DELIMITER ;
