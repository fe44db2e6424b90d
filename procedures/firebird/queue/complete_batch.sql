-- complete_batch: complete all messages that the batch key still holds.
-- Arguments:   p_batch_key (the key that the claim returned)
-- Returns:     affected: messages completed
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost (the batch key holds nothing: roll back)
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT
-- Example:     EXECUTE PROCEDURE mq_complete_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

CREATE OR ALTER PROCEDURE mq_complete_batch (
    p_batch_key mq_argument
)
RETURNS (affected bigint)
AS
DECLARE v_now timestamp;
DECLARE v_type mq_name; DECLARE v_consumer mq_name;
DECLARE v_seconds integer; DECLARE v_max_active integer;
DECLARE v_grouped smallint; DECLARE v_attempt smallint;
DECLARE v_on_complete varchar(7) CHARACTER SET ASCII;
DECLARE v_id bigint;
BEGIN
    v_now = mq_utc_now();
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_drop_batch(p_batch_key) RETURNING_VALUES v_type, v_consumer, v_seconds, v_id, v_attempt;
    IF (v_type IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    affected = 0;
    SELECT grouped, on_complete, max_active FROM imq_policy(:v_type) INTO v_grouped, v_on_complete, v_max_active;
    IF (v_id IS NOT NULL) THEN
    BEGIN
        EXECUTE PROCEDURE imq_complete_messages(v_id, v_attempt, v_consumer, v_on_complete, v_grouped, v_now);
        affected = 1;
    END
    FOR SELECT c.id, c.attempt FROM mq_claimed AS c WHERE c.batch_key = :p_batch_key ORDER BY c.batch_key, c.id
        INTO v_id, v_attempt AS CURSOR done
    DO
    BEGIN
        EXECUTE PROCEDURE imq_complete_messages(v_id, v_attempt, v_consumer, v_on_complete, v_grouped, v_now);
        DELETE FROM mq_claimed WHERE CURRENT OF done;
        affected = affected + 1;
    END
    IF (v_max_active > 0) THEN
        EXECUTE PROCEDURE imq_wake(v_type);
    SUSPEND;
END
