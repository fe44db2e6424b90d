-- drop_alone: end the claim of a batch whose only message is stored in mq_batch itself.
-- Returns:     type, reader and lease_seconds of the claim, id and attempt of the message; NULL when the batch has more
--              messages, is lost, or is locked by another transaction: then call drop_batch
-- This variant for Firebird 5.0 and later replaces drop_alone.sql: see leave_batch.5.sql.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_drop_alone (p_batch_key mq_argument)
RETURNS (type mq_name, reader mq_name, lease_seconds integer, id bigint, attempt smallint)
AS
BEGIN
    DELETE FROM mq_batch WHERE batch_key = :p_batch_key AND id IS NOT NULL SKIP LOCKED
    RETURNING type, reader, lease_seconds, id, attempt
    INTO type, reader, lease_seconds, id, attempt;
END^
SET TERM ; ^
