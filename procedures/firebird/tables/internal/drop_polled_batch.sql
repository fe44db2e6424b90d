-- drop_polled_batch: end a claim. The transaction that deletes its batch owns the entries, which stay for the caller.
-- Returns:     name of the polling table; NULL when the lease was lost
CREATE OR ALTER PROCEDURE imq_drop_polled_batch (p_batch_key mq_argument)
RETURNS (name mq_name)
AS
DECLARE v_found integer;
BEGIN
    EXECUTE PROCEDURE imq_lock_row('polled_batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        DELETE FROM mq_polled_batch WHERE batch_key = :p_batch_key RETURNING name INTO name;
END
