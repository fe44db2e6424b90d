-- get_steps: the steps that handlers of a message have saved, in this attempt and before it.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it)
-- Returns:     step, step_value, saved_at; in the order in which they were saved first
-- Errors:      50002 invalid_argument, 50008 lease_lost, 50011 cancelled
-- Transaction: reads only: a lock would wait for an open transaction of the same handler that has saved a step
-- Example:     SELECT * FROM mq_get_steps(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');
CREATE OR ALTER PROCEDURE mq_get_steps (
    p_id bigint,
    p_batch_key mq_argument
)
RETURNS (step mq_name, step_value mq_text, saved_at timestamp)
AS
DECLARE v_lease_until timestamp;
DECLARE v_seconds integer;
BEGIN
    EXECUTE PROCEDURE imq_require_record_version;
    EXECUTE PROCEDURE imq_hold_message(p_id, p_batch_key, 0) RETURNING_VALUES v_lease_until, v_seconds;
    FOR SELECT s.step, s.step_value, s.saved_at FROM mq_step AS s WHERE s.id = :p_id ORDER BY s.n INTO step, step_value, saved_at DO
        SUSPEND;
END
