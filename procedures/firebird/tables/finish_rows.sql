-- finish_rows: finish a batch of rows, or a part of it: all are done except for its failures.
-- Arguments:   p_batch_key, p_outcomes (a JSON object per line; error: the row failed; retry_after_seconds: when to retry
--              it, without it 5 seconds, doubled for each attempt up to an hour, with jitter; dead: 1 for never;
--              released: 1 gives it back), p_keep_others (1: only what the list names is finished, and the others stay claimed;
--              NULL: 0)
-- Returns:     done, failed (to be retried, or given back), dead, gone (changed or deleted by others): counts of rows
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50006 unsuitable_table, 50008 lease_lost
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; waits up to two seconds for each locked row, then
--              fails with a lock conflict
-- Example:     SELECT * FROM mq_finish_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"id":17,"error":"busy"}');

CREATE OR ALTER PROCEDURE mq_finish_rows (
    p_batch_key mq_argument,
    p_outcomes mq_text = NULL,
    p_keep_others bigint = NULL
)
RETURNS (done bigint, failed bigint, dead bigint, gone bigint)
AS
DECLARE v_name mq_name;
DECLARE v_id bigint; DECLARE v_back bigint;
DECLARE v_retry integer;
DECLARE v_error mq_error;
BEGIN
    done = 0;
    failed = 0;
    dead = 0;
    gone = 0;
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    EXECUTE PROCEDURE imq_require_range('keep_others', p_keep_others, 0, 1);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_drop_polled_batch(p_batch_key, p_keep_others) RETURNING_VALUES v_name;
    IF (v_name IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    DELETE FROM mq_polled_write;
    INSERT INTO mq_polled_write (id, kind) SELECT id, 'D' FROM mq_polled_row WHERE batch_key = :p_batch_key;
    IF (OCTET_LENGTH(p_outcomes) > 0) THEN
        FOR SELECT id, retry, error FROM imq_read_outcomes(:p_outcomes)
            WHERE error IS NOT NULL OR retry = -2 OR :p_keep_others = 1
            INTO v_id, v_retry, v_error
        DO
            UPDATE mq_polled_write
            SET kind = CASE WHEN :v_retry = -2 THEN 'R' WHEN :v_error IS NULL THEN 'K' ELSE 'F' END, retry = :v_retry, error = :v_error
            WHERE id = :v_id;
    IF (p_keep_others = 1) THEN
    BEGIN
        DELETE FROM mq_polled_write WHERE kind = 'D';
        UPDATE mq_polled_write SET kind = 'D' WHERE kind = 'K';
    END
    EXECUTE PROCEDURE imq_settle_rows(v_name) RETURNING_VALUES done, failed, dead, gone, v_back;
    failed = failed + v_back;
    IF (p_keep_others = 1 AND NOT EXISTS (SELECT * FROM mq_polled_row WHERE batch_key = :p_batch_key)) THEN
        DELETE FROM mq_polled_batch WHERE batch_key = :p_batch_key;
    SUSPEND;
END
