-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_consumer (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: the position where this consumer stopped, as claim_batch)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50003 wrong_kind (set_queue has not declared it a ring)
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for another claim
-- Example:     CALL mq_claim_wraparound('crawl', 10, 'worker-1', NULL, NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_claim_wraparound(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_consumer longtext CHARACTER SET utf8mb4,
    IN p_lease_seconds bigint,
    IN p_after_id bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_ring, v_claimed, v_own tinyint;
    DECLARE v_consumer varchar(200) CHARACTER SET utf8mb4;
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
    SELECT ring INTO v_ring FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF NOT v_ring THEN
        CALL imq_raise_error('wrong_kind', CONCAT('type: ', p_type,
            ' is not a ring; use mq_set_option with ring 1, or claim_batch'));
    END IF;
    CALL imq_consumer_name(p_consumer, v_consumer);
    CALL imq_claim(p_type, COALESCE(p_size, 1), v_consumer, p_lease_seconds, p_after_id, v_claimed);
    IF NOT v_claimed THEN
        CALL imq_no_messages();
    END IF;
    CALL imq_end_call(v_own);
END
