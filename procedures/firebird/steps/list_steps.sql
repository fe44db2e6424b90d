-- list_steps: the steps that handlers of a live message have saved, the last one first; for operators, who hold no lease.
-- Arguments:   p_id (the message), p_size (at most so many steps, 1 to 10,000; NULL: 100)
-- Returns:     step, step_value (its first 1,000 characters), saved_at; no row for a message without steps
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq_list_steps(17);
CREATE OR ALTER PROCEDURE mq_list_steps (
    p_id bigint,
    p_size bigint = NULL
)
RETURNS (step mq_name, step_value mq_text, saved_at timestamp)
AS
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_record_version;
    p_size = COALESCE(p_size, 100);
    FOR SELECT s.step, LEFT(s.step_value, 1000), s.saved_at FROM mq_step AS s
        WHERE s.id = :p_id ORDER BY s.n DESC ROWS :p_size INTO step, step_value, saved_at
    DO
        SUSPEND;
END
