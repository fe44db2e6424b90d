-- run_schedule: send a schedule's message once now, in addition to its regular times.
-- Arguments:   p_name (1 to 200 characters)
-- Returns:     id: the new message
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; the schedule's regular times wait until it ends. A NO WAIT transaction fails with a
--              lock conflict while a claim is sending the schedule's message
-- Example:     SELECT * FROM mq_run_schedule('nightly');

CREATE OR ALTER PROCEDURE mq_run_schedule (
    p_name mq_argument
)
RETURNS (id bigint)
AS
DECLARE v_name mq_name;
BEGIN
    EXECUTE PROCEDURE imq_require_name('name', p_name, 0);
    SELECT s.name FROM mq_schedule AS s WHERE s.name = :p_name FOR UPDATE WITH LOCK INTO v_name;
    IF (v_name IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('not_found', 'name: there is no schedule ' || p_name);
    EXECUTE PROCEDURE imq_send_occurrence(v_name, mq_utc_now()) RETURNING_VALUES id;
    SUSPEND;
END
