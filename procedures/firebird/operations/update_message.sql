-- update_message: change a message that is still new: ready, delayed, or waiting for its retry.
-- Arguments:   p_id (the message), p_options (a flat JSON object with at least one name): body (up to 16 MiB), run_at (a time
--              with its zone, from 1970 to ten years ahead; null: now), delay_seconds (0 to 315,360,000, instead of run_at),
--              priority (-32,768 to 32,767; null: 0), max_attempts (1 to 1,000; null: the queue's), headers (a text of up to
--              64 KiB; null: none)
-- Returns:     affected (1; 0 when it was not changed), state (N after a change; otherwise A: active, E: dead, C: archived, N:
--              another transaction is claiming or changing it; NULL: there is no such message)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; never waits for a claim
-- Example:     SELECT * FROM mq_update_message(17, '{"priority": -5, "run_at": null}');
--
-- A new time acts as in send_message with replace: a message that blocked its group does so no longer.
CREATE OR ALTER PROCEDURE mq_update_message (
    p_id bigint,
    p_options mq_text
)
RETURNS (affected bigint, state varchar(1) CHARACTER SET ASCII)
AS
DECLARE v_option varchar(40) CHARACTER SET ASCII; DECLARE v_number bigint; DECLARE v_moment timestamp; DECLARE v_text mq_text;
DECLARE v_body mq_text; DECLARE v_headers mq_text;
DECLARE v_run_at timestamp; DECLARE v_delay_seconds bigint; DECLARE v_priority bigint; DECLARE v_max_attempts bigint;
-- 1: the options name it.
DECLARE v_any smallint = 0; DECLARE v_bodied smallint = 0; DECLARE v_timed smallint = 0; DECLARE v_limited smallint = 0;
DECLARE v_headed smallint = 0;
DECLARE v_now timestamp; DECLARE v_first_run_at timestamp; DECLARE v_due_at timestamp;
DECLARE v_type mq_name; DECLARE v_group_key mq_name;
DECLARE v_grouped smallint; DECLARE v_attempts smallint;
DECLARE v_error mq_error;
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    FOR
        SELECT o.name, o.number, o.moment, o.text
        FROM imq_read_options(:p_options, 'options', ';body:text;delay_seconds:0:315360000;headers:text;'
            || 'max_attempts:1:1000;priority:-32768:32767;run_at:time;') AS o
        INTO v_option, v_number, v_moment, v_text
    DO
    BEGIN
        v_any = 1;
        v_bodied = IIF(v_option = 'body', 1, v_bodied);
        v_body = IIF(v_option = 'body', v_text, v_body);
        v_timed = IIF(v_option IN ('run_at', 'delay_seconds'), 1, v_timed);
        v_run_at = IIF(v_option = 'run_at', v_moment, v_run_at);
        v_delay_seconds = IIF(v_option = 'delay_seconds', v_number, v_delay_seconds);
        v_priority = IIF(v_option = 'priority', COALESCE(v_number, 0), v_priority);
        v_limited = IIF(v_option = 'max_attempts', 1, v_limited);
        v_max_attempts = IIF(v_option = 'max_attempts', v_number, v_max_attempts);
        v_headed = IIF(v_option = 'headers', 1, v_headed);
        v_headers = IIF(v_option = 'headers', v_text, v_headers);
    END
    IF (v_any = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'options: must name at least one of body, delay_seconds, headers, max_attempts, priority, run_at');
    EXECUTE PROCEDURE imq_require_message(IIF(v_bodied = 1, v_body, ''), v_run_at, v_priority, NULL, NULL, v_max_attempts, v_headers,
        NULL, v_delay_seconds, NULL);
    EXECUTE PROCEDURE imq_require_read_committed;
    v_now = mq_utc_now();
    affected = 0;
    SELECT m.type, COALESCE(m.group_key, '') FROM mq_message AS m WHERE m.id = :p_id INTO v_type, v_group_key;
    IF (v_type IS NOT NULL) THEN
    BEGIN
        SELECT grouped FROM imq_policy(:v_type) INTO v_grouped;
        EXECUTE PROCEDURE imq_leave_place(v_type, v_grouped, p_id, v_group_key, NULL, NULL)
            RETURNING_VALUES v_attempts, v_error, v_due_at;
    END
    IF (v_attempts IS NULL) THEN
    BEGIN
        state = imq_state_of(p_id);
        SUSPEND;
        EXIT;
    END

    IF (v_timed = 1) THEN
        v_run_at = COALESCE(v_run_at, DATEADD(v_delay_seconds SECOND TO v_now), v_now);
    UPDATE mq_message AS m
    SET m.run_at = COALESCE(:v_run_at, m.run_at), m.priority = COALESCE(:v_priority, m.priority),
        m.max_attempts = IIF(:v_limited = 1, :v_max_attempts, m.max_attempts)
    WHERE m.id = :p_id
    RETURNING m.run_at, m.priority INTO v_first_run_at, v_priority;
    IF (v_bodied = 1) THEN
        UPDATE mq_message AS m SET m.body = :v_body WHERE m.id = :p_id;
    IF (v_headed = 1) THEN
        UPDATE mq_message AS m SET m.headers = :v_headers WHERE m.id = :p_id;
    v_due_at = COALESCE(v_run_at, v_due_at, v_first_run_at);
    -- A retry that keeps its time still blocks its group.
    EXECUTE PROCEDURE imq_place_message(v_type, v_grouped, p_id, v_group_key, v_priority, v_due_at, v_now, v_attempts, v_error,
        IIF(v_timed = 1 OR v_due_at <= v_now, 1, 0));
    affected = 1;
    state = 'N';
    SUSPEND;
END
