-- drop_alone: end the claim of a batch whose only message stands in mq_batch itself.
-- Arguments:   p_batch_key
-- Returns:     type, reader and lease_seconds of the claim, id and attempt of the message; NULL when the batch is another one, is
--              lost, or another transaction has it: then drop_batch
-- Errors:      none
-- Transaction: joins the caller's; calls for the same batch wait for each other
-- Example:     EXECUTE PROCEDURE mq_drop_alone(p_batch_key) RETURNING_VALUES v_type, v_reader, v_seconds, v_id, v_attempt;
--
-- This is the body for Firebird 5.0 and later, beside drop_alone.sql: see withdraw.5.sql.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_drop_alone (
    p_batch_key mq_argument
)
RETURNS (
    type mq_name,
    reader mq_name,
    lease_seconds integer,
    id bigint,
    attempt smallint
)
AS
BEGIN
    DELETE FROM mq_batch WHERE batch_key = :p_batch_key AND id IS NOT NULL SKIP LOCKED
    RETURNING type, reader, lease_seconds, id, attempt
    INTO type, reader, lease_seconds, id, attempt;
END^

SET TERM ; ^
