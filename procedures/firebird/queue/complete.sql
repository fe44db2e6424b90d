-- complete: complete one claimed message: delete it, or archive it if the queue's policy is archive.
-- Arguments:   p_id, p_batch_key (the key that its claim returned)
-- Returns:     affected: 1
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost (the batch key does not hold the message:
--              roll back)
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT
-- Example:     EXECUTE PROCEDURE mq_complete(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

CREATE OR ALTER PROCEDURE mq_complete (
    p_id bigint,
    p_batch_key mq_argument
)
RETURNS (affected bigint)
AS
DECLARE v_type mq_name; DECLARE v_consumer mq_name;
DECLARE v_attempt smallint; DECLARE v_grouped smallint;
DECLARE v_max_active integer;
DECLARE v_on_complete varchar(7) CHARACTER SET ASCII;
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    EXECUTE PROCEDURE imq_require_read_committed;
    EXECUTE PROCEDURE imq_leave_batch(p_id, p_batch_key) RETURNING_VALUES v_type, v_attempt, v_consumer;
    SELECT grouped, on_complete, max_active FROM imq_policy(:v_type) INTO v_grouped, v_on_complete, v_max_active;
    EXECUTE PROCEDURE imq_complete_messages(p_id, v_attempt, v_consumer, v_on_complete, v_grouped, mq_utc_now());
    IF (v_max_active > 0) THEN
        EXECUTE PROCEDURE imq_wake(v_type);
    affected = 1;
    SUSPEND;
END
