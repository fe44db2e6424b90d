-- drop_polled_batch: end a claim. The transaction that deletes its batch owns the entries, which stay for the caller.
-- Arguments:   p_batch_key
-- Returns:     name of the polling table; NULL when the lease was lost
-- Errors:      the engine's lock conflict, when another transaction holds the batch for more than two seconds
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_drop_polled_batch(p_batch_key) RETURNING_VALUES v_name;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_drop_polled_batch (
    p_batch_key mq_argument
)
RETURNS (
    name mq_name
)
AS
DECLARE v_found integer;
BEGIN
    EXECUTE PROCEDURE mq_lock_row('polled_batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        DELETE FROM mq_polled_batch WHERE batch_key = :p_batch_key RETURNING name INTO name;
END^

SET TERM ; ^
