-- leave_batch: remove one message from the batch that holds it.
-- Returns:     type, attempt and consumer of the claim; raises lease_lost when the key does not hold the message
-- Transaction: joins the caller's; calls for the same batch wait for each other
CREATE OR ALTER PROCEDURE imq_leave_batch (p_id bigint, p_batch_key mq_argument)
RETURNS (type mq_name, attempt smallint, consumer mq_name)
AS
DECLARE v_found integer;
DECLARE v_id bigint;
BEGIN
    -- On 5.0 one DELETE removes the only message of a batch, if no other transaction has locked the batch.
    /*!5 DELETE FROM mq_batch WHERE batch_key = :p_batch_key AND id = :p_id SKIP LOCKED RETURNING type, attempt, consumer
    INTO type, attempt, consumer;
    IF (type IS NOT NULL) THEN
        EXIT; */
    EXECUTE PROCEDURE imq_lock_row('batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        SELECT type, consumer, id, attempt FROM mq_batch WHERE batch_key = :p_batch_key INTO type, consumer, v_id, attempt;
    IF (v_found = 1 AND v_id IS NULL) THEN
        DELETE FROM mq_claimed WHERE batch_key = :p_batch_key AND id = :p_id RETURNING attempt INTO attempt;
    IF (attempt IS NULL OR v_id <> p_id) THEN
        EXECUTE PROCEDURE imq_raise_error('lease_lost',
            'batch_key: does not hold message ' || p_id || '; roll back, do not retry, continue with the next claim');
    -- If this is the only message, in the batch row itself or the last one in mq_claimed, delete the batch too.
    IF (v_id = p_id OR NOT EXISTS (SELECT * FROM mq_claimed WHERE batch_key = :p_batch_key)) THEN
        DELETE FROM mq_batch WHERE batch_key = :p_batch_key;
END
