-- hold_message: make sure that a batch key holds a message, with p_lock 1 until the caller's transaction ends; else raise
--               lease_lost, or cancelled.
-- Returns:     lease_until, lease_seconds: of the batch
-- Transaction: what finishes or cancels this message waits, rescue and release_consumer skip it; the other messages of the batch are
--              free
--
-- The row of the message is locked, not that of the batch: its neighbours would wait for the whole transaction of this
-- handler. Firebird has no shared locks of rows, so with p_lock 1 the sessions of one handler wait for each other. A lock is
-- a version of the row: a session with an older snapshot meets it as a change, and cannot miss a rescue.
CREATE OR ALTER PROCEDURE imq_hold_message (p_id bigint, p_batch_key mq_argument, p_lock smallint)
RETURNS (lease_until timestamp, lease_seconds integer)
AS
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    IF (p_lock = 1) THEN
        EXECUTE PROCEDURE imq_lock_message(p_id);
    SELECT b.lease_until, b.lease_seconds FROM mq_batch AS b
    WHERE b.batch_key = :p_batch_key
        AND (b.id = :p_id OR EXISTS (SELECT * FROM mq_claimed AS c WHERE c.batch_key = :p_batch_key AND c.id = :p_id))
    INTO lease_until, lease_seconds;
    IF (lease_until IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('lease_lost',
            'batch_key: does not hold message ' || p_id || '; roll back, do not retry, continue with the next claim');
    IF (EXISTS (SELECT * FROM mq_cancelled WHERE id = :p_id)) THEN
        EXECUTE PROCEDURE imq_raise_error('cancelled', 'message ' || p_id || ' was cancelled; roll back, and end its handler');
END
