-- drop_polled_batch: end a claim of rows. The transaction that deletes its row owns what it held, which is still in mq_polled_row.
-- Arguments:   p_batch_key
-- Returns:     name of the adopted table; NULL when the claim was lost
-- Errors:      the engine's lock conflict when another transaction keeps the row for longer than two seconds
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
