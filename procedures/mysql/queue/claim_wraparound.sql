-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: the position where this reader stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50003 queue_is_ordered (or has limits per group)
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for another claim
-- Example:     CALL mq_claim_wraparound('crawl', 10, 'worker-1', NULL, NULL);
--
-- An index by id would make each claim of every other queue twice as expensive. Instead, the first claim that finds a
-- message turns the type into a ring: all its rows in mq_ready get one priority and one run_at, so the primary key orders
-- them by id, also for claim_batch. move_to_ring moves the messages that were sent before. The position of a reader (round
-- and id) is inserted, not updated, like the marks in mq_mark: no claim waits for it. When two claims of one reader start
-- at the same position, the position further ahead counts. A row in mq_ring marks the type as a ring.
--
-- Low-water mark. A claim that finds too few messages continues at the lowest id. While another transaction keeps a
-- snapshot open, the claim reads all dead rows before the first ready message. The scan for due messages and messages
-- outside the ring does the same. If that took long, the next claims start there, for ten times as long as it took, at most
-- 5 seconds. The mark is stored as the position of the reader with the empty name, valid until low_until. A procedure that
-- makes a message ready below the mark calls lower_ring. A message that a sender commits late below the mark waits for the
-- next full scan.

DROP PROCEDURE IF EXISTS mq_claim_wraparound;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_claim_wraparound(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_reader longtext CHARACTER SET utf8mb4,
    IN p_lease_seconds bigint,
    IN p_after_id bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE c_highest bigint DEFAULT 9223372036854775807;
    -- Microseconds. A longer scan leaves a low-water mark; reading 1,000 dead rows takes 100 to 200.
    DECLARE c_long int DEFAULT 500;
    DECLARE c_longest int DEFAULT 5000000;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_size int DEFAULT COALESCE(p_size, 1);
    DECLARE v_grouped, v_paused, v_full_scan, v_outside tinyint;
    DECLARE v_seconds, v_left, v_max_active, v_rate, v_rate_seconds int;
    DECLARE v_reader varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_n, v_position, v_after, v_low_n, v_from, v_lowest_id, v_last_id, v_scanned bigint;
    DECLARE v_scanned_again bigint DEFAULT 0;
    DECLARE v_low_until, v_promoted_to datetime(6);
    DECLARE v_items, v_more longtext CHARACTER SET utf8mb4;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_require_name('reader', p_reader, 1);
    CALL imq_require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    CALL imq_begin_call(1, v_own);
    CALL imq_reader_name(p_reader, v_reader);
    SELECT grouped, paused, COALESCE(p_lease_seconds, lease_seconds), max_active, rate, rate_seconds
    INTO v_grouped, v_paused, v_seconds, v_max_active, v_rate, v_rate_seconds
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF v_grouped THEN
        CALL imq_raise_error('queue_is_ordered', CONCAT('type: ', p_type,
            ' is ordered or has limits per group; use claim_batch'));
    END IF;

    IF v_max_active + v_rate > 0 AND NOT v_paused THEN
        CALL imq_allowance(p_type, v_size, v_max_active, v_rate, v_rate_seconds, v_size);
    END IF;
    IF v_size > 0 AND NOT v_paused THEN
        CALL imq_fill_ring(p_type, v_size, v_now, v_low_n, v_low_until, v_full_scan, v_from, v_promoted_to, v_outside, v_scanned);
        BEGIN
            DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_n = NULL;
            SELECT n, after_id INTO v_n, v_position
            FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND reader = v_reader ORDER BY n DESC,
                after_id DESC LIMIT 1;
        END;
        SET v_after = COALESCE(p_after_id, v_position, 0);
        IF v_outside AND v_own THEN
            CALL imq_move_to_ring(p_type, v_outside);
        END IF;
        IF v_outside THEN
            CALL imq_pick_outside(p_type, v_size, v_after, v_items);
        ELSE
            CALL imq_take_ring(p_type, v_size, GREATEST(v_after, v_from), c_highest, v_items);
            SET v_left = v_size - COALESCE(JSON_LENGTH(v_items), 0);
            IF v_left > 0 THEN
                CALL imq_scan_ring(p_type, v_from, v_after, v_items IS NULL, v_lowest_id, v_scanned_again);
                SET v_scanned = v_scanned + v_scanned_again, v_from = COALESCE(v_lowest_id - 1, GREATEST(v_after, v_from));
            END IF;
            IF v_lowest_id IS NOT NULL THEN
                CALL imq_take_ring(p_type, v_left, v_from, v_after, v_more);
                SET v_items = IF(v_items IS NULL OR v_more IS NULL, COALESCE(v_items, v_more),
                    CONCAT(LEFT(v_items, CHAR_LENGTH(v_items) - 1), ',', SUBSTRING(v_more, 2)));
            END IF;
            IF v_scanned > c_long AND (v_items IS NOT NULL OR v_n IS NOT NULL) THEN
                CALL imq_renew_ring_mark(p_type, v_low_n, v_from, IF(v_full_scan, UTC_TIMESTAMP(6)
                    + INTERVAL LEAST(10 * v_scanned, c_longest) MICROSECOND, v_low_until), v_promoted_to);
            END IF;
        END IF;
    END IF;

    IF v_items IS NULL THEN
        CALL imq_no_messages();
    ELSE
        SET v_last_id = JSON_EXTRACT(v_items, CONCAT('$[', JSON_LENGTH(v_items) - 1, '][0]'));
        CALL imq_save_position(p_type, v_reader, v_size, COALESCE(v_n, 0) + (p_after_id IS NOT NULL) + (v_last_id <= v_after),
            v_last_id,
            v_n, v_position);
        CALL imq_hold(p_type, v_items, v_reader, v_seconds);
        IF v_max_active + v_rate > 0 THEN
            CALL imq_spend(p_type, JSON_LENGTH(v_items), v_rate, v_rate_seconds);
        END IF;
    END IF;
    CALL imq_end_call(v_own);
END//

DELIMITER ;
