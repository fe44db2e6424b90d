-- drop_alone: end the claim of a batch whose only message is stored in mq_batch itself.
-- Returns:     type, consumer and lease_seconds of the claim, id and attempt of the message; NULL when the batch has more
--              messages, is lost, or on 5.0 is locked by another transaction: then call drop_batch
-- Transaction: joins the caller's; calls for the same batch wait for each other
CREATE OR ALTER PROCEDURE imq_drop_alone (p_batch_key mq_argument)
RETURNS (type mq_name, consumer mq_name, lease_seconds integer, id bigint, attempt smallint)
AS
DECLARE v_found integer;
BEGIN
    /*!5 DELETE FROM mq_batch WHERE batch_key = :p_batch_key AND id IS NOT NULL SKIP LOCKED
    RETURNING type, consumer, lease_seconds, id, attempt INTO type, consumer, lease_seconds, id, attempt;
    EXIT; */
    SELECT 1 FROM mq_batch WHERE batch_key = :p_batch_key AND id IS NOT NULL INTO v_found;
    IF (v_found = 1) THEN
        EXECUTE PROCEDURE imq_lock_row('batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        DELETE FROM mq_batch WHERE batch_key = :p_batch_key RETURNING type, consumer, lease_seconds, id, attempt
        INTO type, consumer, lease_seconds, id, attempt;
END
