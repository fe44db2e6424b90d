-- withdraw: take one message out of the batch that holds it.
-- Arguments:   p_id, p_batch_key
-- Returns:     type, attempt and reader of the claim; NULL when the key does not hold the message
-- Errors:      none
-- Transaction: joins the caller's; calls for the same batch wait for each other
-- Example:     EXECUTE PROCEDURE mq_withdraw(17, p_batch_key) RETURNING_VALUES v_type, v_attempt, v_reader;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_withdraw (
    p_id bigint,
    p_batch_key mq_argument
)
RETURNS (
    type mq_name,
    attempt smallint,
    reader mq_name
)
AS
DECLARE v_found integer;
BEGIN
    -- The only message, in the row of the batch itself or in mq_claimed, takes the batch with it, which is the lock too.
    BEGIN
        DELETE FROM mq_batch AS b
        WHERE b.batch_key = :p_batch_key
            AND (b.id = :p_id
                OR (EXISTS (SELECT * FROM mq_claimed AS c WHERE c.batch_key = :p_batch_key AND c.id = :p_id)
                    AND NOT EXISTS (SELECT * FROM mq_claimed AS c WHERE c.batch_key = :p_batch_key AND c.id <> :p_id)))
        RETURNING b.type, b.attempt, b.reader INTO type, attempt, reader;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            type = NULL;
    END
    IF (type IS NULL) THEN
    BEGIN
        EXECUTE PROCEDURE mq_lock_row('batch', p_batch_key, NULL) RETURNING_VALUES v_found;
        IF (v_found = 1) THEN
            SELECT type, reader, IIF(id = :p_id, attempt, NULL) FROM mq_batch WHERE batch_key = :p_batch_key
            INTO type, reader, attempt;
    END
    IF (attempt IS NULL AND type IS NOT NULL) THEN
        DELETE FROM mq_claimed WHERE batch_key = :p_batch_key AND id = :p_id RETURNING attempt INTO attempt;
    IF (attempt IS NULL) THEN
        type = NULL;
    ELSE IF (v_found = 1 AND NOT EXISTS (SELECT * FROM mq_claimed WHERE batch_key = :p_batch_key)) THEN
        DELETE FROM mq_batch WHERE batch_key = :p_batch_key;
END^

SET TERM ; ^
