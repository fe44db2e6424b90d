-- save_report: write the row of a consumer; a report after silence or a stop starts its totals again.
-- Arguments:   p_type, p_consumer, p_now, p_completed, p_failed, p_dead (NULL: count them), p_busy_ms, p_waited_ms,
--              p_next_seconds (0: the consumer stops), p_handling
-- Returns:     p_counted: the number of dead letters since the last report

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_save_report(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_consumer varchar(200) CHARACTER SET utf8mb4, IN p_now datetime(6),
    IN p_completed bigint, IN p_failed bigint, IN p_dead bigint, IN p_busy_ms bigint, IN p_waited_ms bigint,
    IN p_next_seconds bigint, IN p_handling varchar(4000) CHARACTER SET utf8mb4, OUT p_counted bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- The newest dead letters may not be committed yet: the next report counts them. The last report has no margin,
    -- because all work is done by then.
    DECLARE c_margin int DEFAULT 2;
    -- A stopped consumer's row is kept for an hour: without a row, none of its dead letters of this hour is counted yet.
    DECLARE c_unseen int DEFAULT 1;
    DECLARE c_most int DEFAULT 10000;
    DECLARE v_until datetime(6) DEFAULT p_now - INTERVAL IF(p_next_seconds = 0, 0, c_margin) SECOND;
    DECLARE v_due datetime(6) DEFAULT IF(p_next_seconds > 0, p_now + INTERVAL 2 * p_next_seconds SECOND, NULL);
    DECLARE v_counted_at datetime(6);
    DECLARE v_goes_on tinyint;
    DECLARE v_known int;
    SELECT COUNT(*) INTO v_known FROM mq_consumer AS c FORCE INDEX (PRIMARY) WHERE c.type = p_type AND c.consumer = p_consumer;
    IF v_known = 0 THEN
        SELECT COUNT(*) INTO v_known
        FROM (SELECT 1 FROM mq_consumer AS c FORCE INDEX (PRIMARY) WHERE c.type = p_type LIMIT c_most) AS x;
        IF v_known = c_most THEN
            CALL imq_raise_error('invalid_argument', CONCAT('consumer: this queue has ', c_most, ' consumers already'));
        END IF;
    END IF;
    -- Insert the row first, as a stopped consumer: at REPEATABLE READ, locking a missing row would lock a gap into which
    -- others insert.
    INSERT INTO mq_consumer (type, consumer, started_at, reported_at, due_at, counted_at, completed, failed, dead, busy_ms, waited_ms)
    VALUES (p_type, p_consumer, p_now, p_now, NULL, p_now - INTERVAL c_unseen HOUR, 0, 0, 0, 0, 0)
    ON DUPLICATE KEY UPDATE mq_consumer.started_at = mq_consumer.started_at;
    SELECT c.counted_at, COALESCE(c.due_at >= p_now, 0) INTO v_counted_at, v_goes_on
    FROM mq_consumer AS c FORCE INDEX (PRIMARY) WHERE c.type = p_type AND c.consumer = p_consumer FOR UPDATE;
    SET p_counted = COALESCE(p_dead, 0);
    IF p_dead IS NULL THEN
        SELECT COUNT(*) INTO p_counted
        FROM mq_dead AS d FORCE INDEX (dead_age)
        WHERE d.type = p_type AND d.died_at > v_counted_at AND d.died_at <= v_until
            AND d.consumer = p_consumer COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;
    END IF;
    UPDATE mq_consumer AS c FORCE INDEX (PRIMARY)
    SET c.started_at = IF(v_goes_on, c.started_at, p_now),
        c.reported_at = p_now,
        c.due_at = v_due,
        c.handling = p_handling,
        -- Reports of earlier minutes pass zero: they count nothing, and the next count must not miss what died before.
        c.counted_at = IF(p_dead = 0, c.counted_at, GREATEST(c.counted_at, v_until)),
        c.completed = p_completed + IF(v_goes_on, c.completed, 0),
        c.failed = p_failed + IF(v_goes_on, c.failed, 0),
        c.dead = p_counted + IF(v_goes_on, c.dead, 0),
        c.busy_ms = p_busy_ms + IF(v_goes_on, c.busy_ms, 0),
        c.waited_ms = p_waited_ms + IF(v_goes_on, c.waited_ms, 0)
    WHERE c.type = p_type AND c.consumer = p_consumer;
END
