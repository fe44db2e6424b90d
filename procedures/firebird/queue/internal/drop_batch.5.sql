-- drop_batch: end a claim: delete the row of its batch. All its messages are then in mq_claimed, also one that was stored
--             in mq_batch.
-- This variant for Firebird 5.0 and later replaces drop_batch.sql: see leave_batch.5.sql.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_drop_batch (p_batch_key mq_argument)
RETURNS (type mq_name, reader mq_name, lease_seconds integer)
AS
DECLARE v_found integer;
DECLARE v_id bigint;
DECLARE v_attempt smallint;
BEGIN
    DELETE FROM mq_batch WHERE batch_key = :p_batch_key SKIP LOCKED RETURNING type, reader, lease_seconds, id, attempt
    INTO type, reader, lease_seconds, v_id, v_attempt;
    IF (ROW_COUNT = 0) THEN
        EXECUTE PROCEDURE imq_lock_row('batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        DELETE FROM mq_batch WHERE batch_key = :p_batch_key RETURNING type, reader, lease_seconds, id, attempt
        INTO type, reader, lease_seconds, v_id, v_attempt;
    IF (v_id IS NOT NULL) THEN
        INSERT INTO mq_claimed (batch_key, id, n, attempt) VALUES (:p_batch_key, :v_id, 1, :v_attempt);
END^
SET TERM ; ^
