-- fail: record a failed attempt: retry the message after a delay, or dead-letter it when its attempts are used up.
-- Arguments:   p_id, p_batch_key (the key that its claim returned), p_error (cut to 4,000 characters),
--              p_retry_after_seconds (0 to 315,360,000; NULL: the queue's backoff)
-- Returns:     state: N (will be retried) or E (dead letter); NULL: it was cancelled, and is deleted
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost (the batch key does not hold the message:
--              roll back)
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT
-- Example:     EXECUTE PROCEDURE mq_fail(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 'connection refused');

CREATE OR ALTER PROCEDURE mq_fail (
    p_id bigint,
    p_batch_key mq_argument,
    p_error mq_text = NULL,
    p_retry_after_seconds bigint = NULL
)
RETURNS (state varchar(1) CHARACTER SET ASCII)
AS
DECLARE v_type mq_name; DECLARE v_consumer mq_name;
DECLARE v_attempt smallint;
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    EXECUTE PROCEDURE imq_require_range('retry_after_seconds', p_retry_after_seconds, 0, 315360000);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_leave_batch(p_id, p_batch_key) RETURNING_VALUES v_type, v_attempt, v_consumer;
    EXECUTE PROCEDURE imq_fail_message(v_type, v_consumer, p_id, v_attempt, p_retry_after_seconds,
        CAST(SUBSTRING(p_error FROM 1 FOR 4000) AS varchar(4000) CHARACTER SET UTF8)) RETURNING_VALUES state;
    EXECUTE PROCEDURE imq_wake(v_type);
    SUSPEND;
END
