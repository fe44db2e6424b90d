-- snooze: put a claimed message back, due later: no attempt is counted, and its steps are kept; if it was
--         cancelled, delete it.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_seconds (0 to 315,360,000)
-- Returns:     affected: 1
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost (the batch key does not hold the message:
--              roll back)
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; in an ordered queue the message's group waits,
--              as for a retry
-- Example:     SELECT * FROM mq_snooze(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 3600);
CREATE OR ALTER PROCEDURE mq_snooze (
    p_id bigint,
    p_batch_key mq_argument,
    p_seconds bigint
)
RETURNS (affected bigint)
AS
DECLARE v_type mq_name; DECLARE v_consumer mq_name;
DECLARE v_attempt smallint;
DECLARE v_state varchar(1) CHARACTER SET ASCII;
BEGIN
    IF (p_id IS NULL OR p_seconds IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', TRIM(IIF(p_id IS NULL, 'id', 'seconds')) || ': must not be NULL');
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    EXECUTE PROCEDURE imq_require_range('seconds', p_seconds, 0, 315360000);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_leave_batch(p_id, p_batch_key) RETURNING_VALUES v_type, v_attempt, v_consumer;
    -- As a failure that the message survives, because this attempt does not count.
    EXECUTE PROCEDURE imq_fail_message(v_type, v_consumer, p_id, v_attempt - 1, p_seconds, NULL) RETURNING_VALUES v_state;
    EXECUTE PROCEDURE imq_wake(v_type);
    affected = 1;
    SUSPEND;
END
