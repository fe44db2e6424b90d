-- drop_batch: end a claim: delete the row of its batch. All its messages are then in mq_claimed, also one that was stored
--             in mq_batch.
-- Returns:     type, consumer and lease_seconds of the claim; NULL when the batch is lost
-- Transaction: joins the caller's; calls for the same batch wait for each other
CREATE OR ALTER PROCEDURE imq_drop_batch (p_batch_key mq_argument)
RETURNS (type mq_name, consumer mq_name, lease_seconds integer)
AS
DECLARE v_found integer;
DECLARE v_id bigint;
DECLARE v_attempt smallint;
BEGIN
    -- On 5.0 one DELETE is enough, if no other transaction has locked the batch.
    /*!5 DELETE FROM mq_batch WHERE batch_key = :p_batch_key SKIP LOCKED RETURNING type, consumer, lease_seconds, id, attempt
    INTO type, consumer, lease_seconds, v_id, v_attempt; */
    IF (type IS NULL) THEN
        EXECUTE PROCEDURE imq_lock_row('batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        DELETE FROM mq_batch WHERE batch_key = :p_batch_key RETURNING type, consumer, lease_seconds, id, attempt
        INTO type, consumer, lease_seconds, v_id, v_attempt;
    IF (v_id IS NOT NULL) THEN
        INSERT INTO mq_claimed (batch_key, id, n, attempt) VALUES (:p_batch_key, :v_id, 1, :v_attempt);
END
