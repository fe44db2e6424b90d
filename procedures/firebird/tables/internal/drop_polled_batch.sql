-- drop_polled_batch: end a claim. The transaction that deletes its batch owns the entries, which stay for the caller.
-- Arguments:   p_batch_key, p_keep (1: only lock the batch)
-- Returns:     name of the polling table; NULL when the lease was lost
CREATE OR ALTER PROCEDURE imq_drop_polled_batch (p_batch_key mq_argument, p_keep bigint = NULL)
RETURNS (name mq_name)
AS
DECLARE v_found integer;
BEGIN
    EXECUTE PROCEDURE imq_lock_row('polled_batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1 AND p_keep = 1) THEN
        SELECT name FROM mq_polled_batch WHERE batch_key = :p_batch_key INTO name;
    ELSE IF (v_found = 1) THEN
        DELETE FROM mq_polled_batch WHERE batch_key = :p_batch_key RETURNING name INTO name;
END
