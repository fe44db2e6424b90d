-- claim_batch: claim up to p_size ready messages of one type under one new batch key.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_consumer (NULL: the application name), p_lease_seconds (NULL: the
--              queue's)
-- Returns:     the messages in order of priority, run_at, id; of a ring in order of id, from where this consumer stopped;
--              no rows when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for another claim
-- Example:     CALL mq_claim_batch('email', 10, 'worker-1', 60);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_claim_batch(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_consumer longtext CHARACTER SET utf8mb4,
    IN p_lease_seconds bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_claimed, v_own tinyint;
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
    CALL imq_claim(p_type, COALESCE(p_size, 1), v_consumer, p_lease_seconds, NULL, v_claimed);
    IF NOT v_claimed THEN
        CALL imq_no_messages();
    END IF;
    CALL imq_end_call(v_own);
END
