-- release_batch: release all messages that the batch key still holds: they are ready again, and the attempt does not count.
-- Arguments:   p_batch_key (the key that the claim returned)
-- Returns:     affected: messages released; 0 when the lease was lost
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; waits for a transaction that has saved a step
-- Example:     EXECUTE PROCEDURE mq_release_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

CREATE OR ALTER PROCEDURE mq_release_batch (
    p_batch_key mq_argument
)
RETURNS (affected bigint)
AS
DECLARE v_type mq_name; DECLARE v_consumer mq_name;
DECLARE v_seconds integer;
DECLARE v_grouped smallint; DECLARE v_attempt smallint;
DECLARE v_id bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_drop_batch(p_batch_key) RETURNING_VALUES v_type, v_consumer, v_seconds, v_id, v_attempt;
    affected = 0;
    IF (v_type IS NOT NULL) THEN
    BEGIN
        IF (v_id IS NOT NULL) THEN
            INSERT INTO mq_claimed (batch_key, id, n, attempt) VALUES (:p_batch_key, :v_id, 1, :v_attempt);
        SELECT grouped FROM imq_policy(:v_type) INTO v_grouped;
        FOR SELECT c.id, c.attempt FROM mq_claimed AS c WHERE c.batch_key = :p_batch_key ORDER BY c.batch_key, c.id
            INTO v_id, v_attempt AS CURSOR held
        DO
        BEGIN
            -- A handler's open transaction may have saved a step: others would not see it, and do its work again.
            EXECUTE PROCEDURE imq_lock_message(v_id);
            EXECUTE PROCEDURE imq_put_back(v_type, v_id, v_attempt - 1, v_grouped);
            DELETE FROM mq_claimed WHERE CURRENT OF held;
            affected = affected + 1;
        END
        EXECUTE PROCEDURE imq_lower_mark(v_type);
        EXECUTE PROCEDURE imq_wake(v_type);
    END
    SUSPEND;
END
