-- finish_batch: complete a batch except for its failures, and claim the next batch, in one transaction.
-- Arguments:   p_batch_key, p_outcomes (a JSON object per line; error: the message failed; retry_after_seconds: when to
--              retry it, without it the queue's backoff; dead: 1 dead-letters it; released: 1 gives it back), p_next_size (0
--              to 10,000; NULL or 0: claim nothing)
-- Returns:     the messages of the next batch, with the columns of claim_batch; no rows when p_next_size is 0 or nothing is
--              ready
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for another claim
-- Example:     CALL mq_finish_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"id":17,"error":"busy"}', 100);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_finish_batch(
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_outcomes longtext CHARACTER SET utf8mb4,
    IN p_next_size bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type, v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_items, v_failed, v_released, v_left longtext CHARACTER SET utf8mb4;
    DECLARE v_seconds int;
    DECLARE v_dead bigint;
    DECLARE v_claimed tinyint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF p_next_size NOT BETWEEN 0 AND 10000 THEN
        CALL imq_require_range('next_size', p_next_size, 0, 10000);
    END IF;
    CALL imq_begin_call(1, v_own);
    SELECT type, consumer, lease_seconds, items INTO v_type, v_consumer, v_seconds, v_items
    FROM mq_batch WHERE batch_key = p_batch_key FOR UPDATE;
    IF v_items IS NULL THEN
        -- Check the format only now: the key of an existing batch is valid.
        CALL imq_require_key(p_batch_key);
        CALL imq_raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    END IF;
    DELETE FROM mq_batch WHERE batch_key = p_batch_key;
    IF p_outcomes <> '' THEN
        CALL imq_read_outcomes(p_outcomes, v_items, 0, v_failed, v_released, v_items, v_left);
        IF v_failed IS NOT NULL THEN
            CALL imq_fail_messages(v_type, v_consumer, v_failed, v_dead);
        END IF;
        IF v_released IS NOT NULL THEN
            CALL imq_release_items(v_type, v_released);
        END IF;
    END IF;
    IF v_items IS NOT NULL THEN
        CALL imq_complete_messages(v_type, NULL, NULL, v_items, v_consumer);
    END IF;
    IF p_next_size > 0 THEN
        CALL imq_claim(v_type, p_next_size, v_consumer, v_seconds, NULL, v_claimed);
    END IF;
    IF NOT v_claimed THEN
        CALL imq_no_messages();
    END IF;
    CALL imq_end_call(v_own);
END
