-- hold_message: make sure that a batch key holds a message until the caller's transaction ends; else raise lease_lost, or
--     cancelled.
-- Returns:     p_lease_until, p_lease_seconds: of the batch
-- Transaction: what finishes, rescues or releases this message waits or skips it; the other messages of the batch are free
--
-- The row of the message is locked, not that of the batch: its neighbours would wait for the whole transaction of this
-- handler. rescue and release_consumer leave a batch alone while such a row is locked. In a session above READ COMMITTED the
-- batch is locked too: a snapshot would not show that it has been rescued.
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_hold_message(
    IN p_id bigint, IN p_batch_key longtext CHARACTER SET utf8mb4, OUT p_lease_until datetime(6), OUT p_lease_seconds int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_id bigint;
    DECLARE v_cancelled_at datetime(6);
    DECLARE v_level varchar(20) CHARACTER SET ascii DEFAULT /*M! @@SESSION.tx_isolation */ /*!80000 @@SESSION.transaction_isolation */;
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    CALL imq_require_key(p_batch_key);
    SELECT MAX(cancelled_at) INTO v_cancelled_at FROM mq_message WHERE id = p_id LOCK IN SHARE MODE;
    IF v_level IN ('READ-COMMITTED', 'READ-UNCOMMITTED') THEN
        SELECT items, lease_until, lease_seconds INTO v_items, p_lease_until, p_lease_seconds
        FROM mq_batch WHERE batch_key = p_batch_key;
    ELSE
        SELECT items, lease_until, lease_seconds INTO v_items, p_lease_until, p_lease_seconds
        FROM mq_batch WHERE batch_key = p_batch_key LOCK IN SHARE MODE;
    END IF;
    SELECT MAX(j.id) INTO v_id
    FROM JSON_TABLE(COALESCE(v_items, '[]'), '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j WHERE j.id = p_id;
    IF v_id IS NULL THEN
        CALL imq_raise_error('lease_lost', CONCAT('batch_key: does not hold message ', p_id, '; roll back, do not retry, continue with the next claim'));
    END IF;
    IF v_cancelled_at IS NOT NULL THEN
        CALL imq_raise_error('cancelled', CONCAT('message ', p_id, ' was cancelled; roll back, and end its handler'));
    END IF;
END
