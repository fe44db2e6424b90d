-- count_attempt: count a take that was rolled back as a failed attempt: retry the message after a delay, or dead-letter it.
-- Arguments:   p_id (a ready message that no consumer holds), p_error (cut to 4,000 characters), p_retry_after_seconds (0 to
--              315,360,000; NULL: the queue's backoff), p_dead (1: dead-letter it now; NULL: 0)
-- Returns:     state: N (will be retried) or E (dead letter); NULL when the message is not ready, and nothing has changed
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; skips a message that a claim is taking
-- Example:     EXECUTE PROCEDURE mq_count_attempt(17, 'connection refused');
CREATE OR ALTER PROCEDURE mq_count_attempt (
    p_id bigint,
    p_error mq_text = NULL,
    p_retry_after_seconds bigint = NULL,
    p_dead bigint = NULL
)
RETURNS (state varchar(1) CHARACTER SET ASCII)
AS
DECLARE v_type mq_name; DECLARE v_consumer mq_name;
DECLARE v_attempt smallint;
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE imq_require_range('retry_after_seconds', p_retry_after_seconds, 0, 315360000);
    EXECUTE PROCEDURE imq_require_range('dead', p_dead, 0, 1);
    IF (p_dead = 1 AND p_retry_after_seconds IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'dead: give either dead or retry_after_seconds');
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_remove_ready(p_id) RETURNING_VALUES v_type, v_attempt, v_consumer;
    IF (v_type IS NOT NULL) THEN
    BEGIN
        EXECUTE PROCEDURE imq_fail_message(v_type, v_consumer, p_id, v_attempt, IIF(p_dead = 1, -1, p_retry_after_seconds),
            CAST(SUBSTRING(p_error FROM 1 FOR 4000) AS varchar(4000) CHARACTER SET UTF8)) RETURNING_VALUES state;
        EXECUTE PROCEDURE imq_wake(v_type);
    END
    SUSPEND;
END
