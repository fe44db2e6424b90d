-- drop_batch: end a claim: delete the row of its batch.
-- Returns:     NULL when the batch is lost; id and attempt of the only message, if the row holds it
-- Transaction: joins the caller's; calls for the same batch wait for each other
CREATE OR ALTER PROCEDURE imq_drop_batch (p_batch_key mq_argument)
RETURNS (type mq_name, consumer mq_name, lease_seconds integer, id bigint, attempt smallint)
AS
DECLARE v_found integer;
BEGIN
    -- On 5.0 one DELETE is enough, if no other transaction has locked the batch.
    /*!5 DELETE FROM mq_batch WHERE batch_key = :p_batch_key SKIP LOCKED RETURNING type, consumer, lease_seconds, id, attempt
    INTO type, consumer, lease_seconds, id, attempt; */
    IF (type IS NULL) THEN
        EXECUTE PROCEDURE imq_lock_row('batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        DELETE FROM mq_batch WHERE batch_key = :p_batch_key RETURNING type, consumer, lease_seconds, id, attempt
        INTO type, consumer, lease_seconds, id, attempt;
END
