-- drop_alone: end the claim of a batch whose only message is stored in mq_batch itself.
-- Returns:     type, reader and lease_seconds of the claim, id and attempt of the message; NULL when the batch has more
--              messages or is lost: then call drop_batch
-- Transaction: joins the caller's; calls for the same batch wait for each other
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_drop_alone (p_batch_key mq_argument)
RETURNS (type mq_name, reader mq_name, lease_seconds integer, id bigint, attempt smallint)
AS
DECLARE v_found integer;
BEGIN
    SELECT id FROM mq_batch WHERE batch_key = :p_batch_key INTO id;
    IF (id IS NULL) THEN
        EXIT;
    id = NULL;
    EXECUTE PROCEDURE imq_lock_row('batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        DELETE FROM mq_batch WHERE batch_key = :p_batch_key RETURNING type, reader, lease_seconds, id, attempt
        INTO type, reader, lease_seconds, id, attempt;
END^
SET TERM ; ^
