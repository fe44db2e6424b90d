-- fill_ring: before a round-robin claim: rescue expired claims, send due schedules and promote due messages of a ring, and
--            measure how long the scan for them took.
-- Returns:     p_low_n, p_low_until: the low-water mark, NULL for none; p_full_scan (1: the claim starts at the lowest id),
--              p_from (the claim starts after this id), p_promoted_to (no message due before this time is delayed),
--              p_outside (1: some messages are outside the ring), p_scanned (the duration of the scan, in microseconds)
-- Transaction: joins the caller's; never waits for another claim

DROP PROCEDURE IF EXISTS imq_fill_ring;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_fill_ring(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_now datetime(6),
    OUT p_low_n bigint,
    OUT p_low_until datetime(6),
    OUT p_full_scan tinyint,
    OUT p_from bigint,
    OUT p_promoted_to datetime(6),
    OUT p_outside tinyint,
    OUT p_scanned bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- Microseconds; reading 1,000 dead rows takes 100 to 200.
    DECLARE c_long int DEFAULT 500;
    DECLARE v_promote int DEFAULT GREATEST(2 * p_size, 100);
    DECLARE v_expired, v_scheduled, v_some_due tinyint DEFAULT 0;
    DECLARE v_tries, v_moved, v_rescued int DEFAULT 0;
    DECLARE v_begun, v_first_run_at datetime(6);
    BEGIN
        DECLARE CONTINUE HANDLER FOR NOT FOUND SET p_low_n = NULL;
        SELECT n, after_id, low_until, promoted_to INTO p_low_n, p_from, p_low_until, p_promoted_to
        FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND reader = '' ORDER BY n DESC, after_id DESC LIMIT 1;
    END;
    -- A mark ahead by more than the longest pause, or a promotion in the future: the clock was set back.
    SET p_full_scan = NOT COALESCE(p_now < p_low_until AND p_now > p_low_until - INTERVAL 6 SECOND AND p_promoted_to <= p_now, 0),
        p_outside = 0;
    IF p_full_scan THEN
        SET p_from = -9223372036854775807, p_promoted_to = '1000-01-01';
    END IF;
    -- Measure twice: cold pages are slow only the first time.
    tries: LOOP
        SET v_begun = UTC_TIMESTAMP(6), v_tries = v_tries + 1;
        IF p_full_scan THEN
            SELECT EXISTS (
                    SELECT * FROM mq_batch FORCE INDEX (batch_lease)
                    WHERE type = p_type AND lease_until <= p_now AND lease_seconds >= 0
                ),
                EXISTS (SELECT * FROM mq_schedule FORCE INDEX (schedule_due) WHERE type = p_type),
                -- Messages outside the ring: sent before the type was a ring, or by a sender that did not see the ring yet.
                EXISTS (
                    SELECT * FROM mq_ready FORCE INDEX (PRIMARY)
                    WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01') AND attempts >= 0
                )
            INTO v_expired, v_scheduled, p_outside;
        END IF;
        SELECT EXISTS (
            SELECT * FROM mq_delayed FORCE INDEX (PRIMARY)
            WHERE type = p_type AND run_at > p_promoted_to AND run_at <= p_now AND attempts >= 0
        ) INTO v_some_due;
        SET p_scanned = TIMESTAMPDIFF(MICROSECOND, v_begun, UTC_TIMESTAMP(6));
        IF p_scanned < c_long OR v_tries = 2 THEN
            LEAVE tries;
        END IF;
    END LOOP;
    IF v_expired THEN
        CALL imq_rescue(p_type, 20, v_rescued);
    END IF;
    IF v_scheduled THEN
        CALL imq_send_due(p_type, v_promote);
    END IF;
    IF v_some_due THEN
        CALL imq_promote(p_type, p_promoted_to, p_now, v_promote, v_moved, v_first_run_at);
    END IF;
    IF p_full_scan AND (v_expired OR v_scheduled OR v_moved > 0) THEN
        -- In a type that is not a ring yet, rescued and promoted messages are outside the ring.
        SELECT EXISTS (
            SELECT * FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01') AND attempts >= 0
        ) INTO p_outside;
    END IF;
    IF v_moved < v_promote THEN
        -- Stop before now: another transaction may be about to commit a failed message that is already due.
        SET p_promoted_to = p_now - INTERVAL 1 SECOND;
    END IF;
END//

DELIMITER ;
