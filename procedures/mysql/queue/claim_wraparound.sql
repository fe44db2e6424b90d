-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_consumer (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: the position where this consumer stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50003 wrong_kind (set_queue has not declared it a ring)
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for another claim
-- Example:     CALL mq_claim_wraparound('crawl', 10, 'worker-1', NULL, NULL);
--
-- The position of a consumer (round and id) is inserted, not updated, like the marks in mq_mark: no claim waits for it. When
-- two claims of one consumer start at the same position, the position further ahead counts.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_claim_wraparound(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_consumer longtext CHARACTER SET utf8mb4,
    IN p_lease_seconds bigint,
    IN p_after_id bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_size int DEFAULT COALESCE(p_size, 1);
    DECLARE v_ring, v_paused tinyint;
    DECLARE v_most, v_seconds, v_max_active, v_rate, v_rate_seconds int;
    DECLARE v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_n, v_position, v_after, v_last_id bigint;
    DECLARE v_same tinyint;
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_require_name('consumer', p_consumer, 1);
    CALL imq_require_range('lease_seconds', p_lease_seconds, 1, 86400);
    CALL imq_begin_call(1, v_own);
    CALL imq_consumer_name(p_consumer, v_consumer);
    SELECT ring, paused, COALESCE(p_lease_seconds, lease_seconds), max_active, rate, rate_seconds, max_attempts
    INTO v_ring, v_paused, v_seconds, v_max_active, v_rate, v_rate_seconds, v_most
    FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF NOT v_ring THEN
        CALL imq_raise_error('wrong_kind', CONCAT('type: ', p_type,
            ' is not a ring; use mq_set_option with ring 1, or claim_batch'));
    END IF;

    IF v_max_active + v_rate > 0 AND NOT v_paused THEN
        CALL imq_allowance(p_type, v_size, v_max_active, v_rate, v_rate_seconds, v_size);
    END IF;
    IF v_size > 0 AND NOT v_paused THEN
        BEGIN
            DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_n = NULL;
            SELECT n, after_id INTO v_n, v_position
            FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND consumer = v_consumer ORDER BY n DESC, after_id DESC LIMIT 1;
        END;
        SET v_after = COALESCE(p_after_id, v_position, 0);
        CALL imq_pick(p_type, 0, 0, v_size, 0, v_after, v_items);
    END IF;

    IF v_items IS NULL THEN
        CALL imq_no_messages();
    ELSE
        SET v_last_id = JSON_EXTRACT(v_items, CONCAT('$[', JSON_LENGTH(v_items) - 1, '][0]'));
        -- The same round if the claim ended after its start.
        SET v_same = p_after_id IS NULL AND v_last_id > v_after;
        CALL imq_save_position(p_type, v_consumer, COALESCE(v_n, 0) + (NOT v_same), v_last_id, '',
            IF(v_same, v_n, v_n - 1), v_n, IF(v_same, v_position - 20 * v_size, -9223372036854775807),
            IF(v_same, v_position, 9223372036854775807));
        CALL imq_hold(p_type, v_items, v_consumer, v_seconds, v_most);
        IF v_max_active + v_rate > 0 THEN
            CALL imq_spend(p_type, JSON_LENGTH(v_items), v_rate, v_rate_seconds);
        END IF;
    END IF;
    CALL imq_end_call(v_own);
END
