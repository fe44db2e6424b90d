-- count_attempt: count a take that was rolled back as a failed attempt: retry the message after a delay, or dead-letter it.
-- Arguments:   p_id (a ready message that no consumer holds), p_error (cut to 4,000 characters), p_retry_after_seconds (0 to
--              315,360,000; NULL: the queue's backoff), p_dead (1: dead-letter it now; NULL: 0)
-- Returns:     state: N (will be retried) or E (dead letter); NULL when the message is not ready, and nothing has changed
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; skips a message that a claim is taking at this moment
-- Example:     CALL mq_count_attempt(17, 'connection refused', NULL, NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_count_attempt(
    IN p_id bigint,
    IN p_error longtext CHARACTER SET utf8mb4,
    IN p_retry_after_seconds bigint,
    IN p_dead bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type, v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_attempt int;
    DECLARE v_dead bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    CALL imq_require_range('retry_after_seconds', p_retry_after_seconds, 0, 315360000);
    CALL imq_require_range('dead', p_dead, 0, 1);
    IF p_dead = 1 AND p_retry_after_seconds IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', 'dead: give either dead or retry_after_seconds');
    END IF;
    CALL imq_begin_call(1, v_own);
    CALL imq_remove_ready(p_id, v_type, v_attempt, v_consumer);
    IF v_type IS NOT NULL THEN
        CALL imq_fail_messages(v_type, v_consumer, CONCAT('[[', p_id, ',', v_attempt, ',',
            COALESCE(IF(p_dead = 1, -1, p_retry_after_seconds), 'null'), ',',
            COALESCE(JSON_QUOTE(LEFT(p_error, 4000)), 'null'), ']]'), v_dead);
    END IF;
    CALL imq_end_call(v_own);
    SELECT IF(v_type IS NULL, NULL, IF(v_dead > 0, 'E', 'N')) AS state;
END
