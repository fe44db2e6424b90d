-- finish_messages: finish a part of a batch: the messages that the list names. The others stay claimed.
-- Arguments:   p_batch_key, p_outcomes (a JSON object per line; only the id: the message is done; error: it failed;
--              retry_after_seconds: when to retry it, without it the queue's backoff; dead: 1 dead-letters it; released: 1
--              gives it back without counting the attempt)
-- Returns:     affected: messages that the batch no longer holds
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; calls for the same batch wait for each other
-- Example:     EXECUTE PROCEDURE mq_finish_messages('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"id":17}');

CREATE OR ALTER PROCEDURE mq_finish_messages (
    p_batch_key mq_argument,
    p_outcomes mq_text
)
RETURNS (affected bigint)
AS
DECLARE v_now timestamp;
DECLARE v_type mq_name; DECLARE v_consumer mq_name;
DECLARE v_found integer; DECLARE v_max_active integer; DECLARE v_retry integer;
DECLARE v_grouped smallint; DECLARE v_attempt smallint; DECLARE v_alone_attempt smallint;
DECLARE v_on_complete varchar(7) CHARACTER SET ASCII;
DECLARE v_id bigint; DECLARE v_alone bigint;
DECLARE v_failed integer = 0; DECLARE v_released integer = 0;
DECLARE v_error mq_error;
DECLARE v_state varchar(1) CHARACTER SET ASCII;
BEGIN
    v_now = mq_utc_now();
    affected = 0;
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    IF (p_outcomes IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'outcomes: must not be NULL');
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_lock_row('batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        SELECT type, consumer, id, attempt FROM mq_batch WHERE batch_key = :p_batch_key
        INTO v_type, v_consumer, v_alone, v_alone_attempt;
    IF (v_type IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    SELECT grouped, on_complete, max_active FROM imq_policy(:v_type) INTO v_grouped, v_on_complete, v_max_active;
    IF (OCTET_LENGTH(p_outcomes) > 0) THEN
        FOR SELECT id, retry, error FROM imq_read_outcomes(:p_outcomes) INTO v_id, v_retry, v_error DO
        BEGIN
            v_attempt = NULL;
            IF (v_id = v_alone) THEN
                v_attempt = v_alone_attempt;
            ELSE
                DELETE FROM mq_claimed WHERE batch_key = :p_batch_key AND id = :v_id RETURNING attempt INTO v_attempt;
            IF (v_attempt IS NOT NULL) THEN
            BEGIN
                affected = affected + 1;
                IF (v_retry = -2) THEN
                BEGIN
                    EXECUTE PROCEDURE imq_put_back(v_type, v_id, v_attempt - 1, v_grouped);
                    v_released = v_released + 1;
                END
                ELSE IF (v_error IS NOT NULL) THEN
                BEGIN
                    EXECUTE PROCEDURE imq_fail_message(v_type, v_consumer, v_id, v_attempt, v_retry, v_error)
                    RETURNING_VALUES v_state;
                    v_failed = v_failed + 1;
                END
                ELSE
                    EXECUTE PROCEDURE imq_complete_messages(v_id, v_attempt, v_consumer, v_on_complete, v_grouped, v_now);
            END
        END
    -- If none is left, in the batch row itself or in mq_claimed, delete the batch too.
    IF (affected > 0 AND NOT EXISTS (SELECT * FROM mq_claimed WHERE batch_key = :p_batch_key)) THEN
        DELETE FROM mq_batch WHERE batch_key = :p_batch_key;
    IF (v_released > 0) THEN
        EXECUTE PROCEDURE imq_lower_mark(v_type);
    IF (v_failed + v_released > 0 OR (affected > 0 AND v_max_active > 0)) THEN
        EXECUTE PROCEDURE imq_wake(v_type);
    SUSPEND;
END
