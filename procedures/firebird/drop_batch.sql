-- drop_batch: end a claim: delete the row of a batch and say whose it was. What it held stands in mq_claimed still.
-- Arguments:   p_batch_key
-- Returns:     type, reader and lease_seconds of the claim; NULL when the batch was lost
-- Errors:      none
-- Transaction: joins the caller's; calls for the same batch wait for each other
-- Example:     EXECUTE PROCEDURE mq_drop_batch(p_batch_key) RETURNING_VALUES v_type, v_reader, v_seconds;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_drop_batch (
    p_batch_key mq_argument
)
RETURNS (
    type mq_name,
    reader mq_name,
    lease_seconds integer
)
AS
DECLARE v_found integer;
BEGIN
    EXECUTE PROCEDURE mq_lock_batch(p_batch_key) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        DELETE FROM mq_batch WHERE batch_key = :p_batch_key RETURNING type, reader, lease_seconds
        INTO type, reader, lease_seconds;
END^

SET TERM ; ^
