-- leave_batch: remove one message from the batch that holds it.
-- Returns:     p_type, p_attempt and p_consumer of the claim; raises lease_lost when the key does not hold the message
-- Transaction: joins the caller's; calls for the same batch wait for each other

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_leave_batch(
    IN p_id bigint, IN p_batch_key longtext CHARACTER SET utf8mb4, OUT p_type varchar(200) CHARACTER SET utf8mb4,
    OUT p_attempt int, OUT p_consumer varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_n int;
    SELECT type, consumer, items INTO p_type, p_consumer, v_items FROM mq_batch WHERE batch_key = p_batch_key FOR UPDATE;
    SELECT MAX(j.n), MAX(j.attempt) INTO v_n, p_attempt
    FROM JSON_TABLE(COALESCE(v_items, '[]'), '$[*]' COLUMNS (n FOR ORDINALITY, id bigint PATH '$[0]', attempt int PATH '$[1]')) AS j
    WHERE j.id = p_id;
    IF v_n IS NULL THEN
        CALL imq_raise_error('lease_lost', CONCAT('batch_key: does not hold message ', p_id, '; roll back, do not retry, continue with the next claim'));
    END IF;
    IF JSON_LENGTH(v_items) = 1 THEN
        DELETE FROM mq_batch WHERE batch_key = p_batch_key;
    ELSE
        UPDATE mq_batch SET items = JSON_REMOVE(items, CONCAT('$[', v_n - 1, ']')) WHERE batch_key = p_batch_key;
    END IF;
END
