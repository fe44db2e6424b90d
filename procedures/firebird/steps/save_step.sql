-- save_step: keep what a step of a message's handler has done; the same step again replaces its value.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_step (1 to 200 characters), p_value (up to
--              16 MiB; NULL: the step has no value)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument (10,000 steps a message), 50008 lease_lost, 50011 cancelled (nothing is
--              saved)
-- Transaction: joins the caller's: what the step did in this database commits together with its record. A call that completes
--              the message waits for it, and so does a save_step of the same message in another session; a lease of which
--              less than half is left is extended at once, even if the caller rolls back
-- Example:     SELECT * FROM mq_save_step(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 'charge', '{"charge":"ch_1"}');
CREATE OR ALTER PROCEDURE mq_save_step (
    p_id bigint,
    p_batch_key mq_argument,
    p_step mq_argument,
    p_value mq_text = NULL
)
RETURNS (affected bigint)
AS
DECLARE c_most integer = 10000;
DECLARE v_lease_until timestamp; DECLARE v_until timestamp;
DECLARE v_seconds integer; DECLARE v_count integer; DECLARE v_found integer;
BEGIN
    EXECUTE PROCEDURE imq_require_name('step', p_step, 0);
    IF (OCTET_LENGTH(p_value) > 16777216) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'value: must be a text of up to 16 MiB (16,777,216 bytes)');
    EXECUTE PROCEDURE imq_hold_message(p_id, p_batch_key, 1) RETURNING_VALUES v_lease_until, v_seconds;
    -- A transaction that is rolling back may have freed the message, and still have to remove its steps.
    WHILE (affected IS NULL) DO
    BEGIN
        UPDATE mq_step SET step_value = :p_value, saved_at = mq_utc_now() WHERE id = :p_id AND step = :p_step;
        IF (ROW_COUNT = 0) THEN
        BEGIN
            SELECT COUNT(*) FROM mq_step WHERE id = :p_id INTO v_count;
            IF (v_count >= c_most) THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'step: a message has at most 10,000 steps');
            INSERT INTO mq_step (id, n, saved_at, step, step_value) VALUES (:p_id, :v_count, mq_utc_now(), :p_step, :p_value);
            UPDATE mq_message SET has_steps = 1 WHERE id = :p_id AND has_steps IS NULL;
        END
        affected = 1;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec,
            GDSCODE unique_key_violation, GDSCODE no_dup DO
        BEGIN
            EXECUTE PROCEDURE imq_wait_to_repeat(v_until) RETURNING_VALUES v_until;
            IF (v_until IS NULL) THEN
                EXCEPTION;
        END
    END
    IF (v_lease_until < DATEADD(v_seconds * 500 MILLISECOND TO mq_utc_now())) THEN
    BEGIN
        -- In a transaction of its own: heartbeats do not wait for the caller's, and a snapshot of the caller's hides none of
        -- them. But such a transaction would wait for the caller's own lock of the batch.
        UPDATE mq_batch SET lease_until = DATEADD(lease_seconds SECOND TO mq_utc_now())
        WHERE batch_key = :p_batch_key AND RDB$RECORD_VERSION = CURRENT_TRANSACTION;
        IF (ROW_COUNT = 0) THEN
            IN AUTONOMOUS TRANSACTION DO
            BEGIN
                -- If another call has locked the batch, it extends the lease, or the next step does.
                EXECUTE PROCEDURE imq_lock_row('batch', p_batch_key, NULL, 0) RETURNING_VALUES v_found;
                IF (v_found = 1) THEN
                    UPDATE mq_batch SET lease_until = DATEADD(lease_seconds SECOND TO mq_utc_now())
                    WHERE batch_key = :p_batch_key AND lease_until < DATEADD(lease_seconds * 500 MILLISECOND TO mq_utc_now());
                WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                    v_found = 0;
            END
    END
    SUSPEND;
END
