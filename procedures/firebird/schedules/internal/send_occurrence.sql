-- send_occurrence: send a schedule's message and record it as the last one.
-- Arguments:   p_name (of the schedule, whose row is locked), p_run_at (when it was due)
-- Returns:     id: the new message; NULL when there is no such schedule
CREATE OR ALTER PROCEDURE imq_send_occurrence (p_name mq_name, p_run_at timestamp)
RETURNS (id bigint)
AS
DECLARE v_type mq_name; DECLARE v_group_key mq_name;
DECLARE v_body mq_text; DECLARE v_headers mq_text;
DECLARE v_priority smallint;
BEGIN
    SELECT type, body, headers, priority, group_key FROM mq_schedule WHERE name = :p_name
    INTO v_type, v_body, v_headers, v_priority, v_group_key;
    IF (v_type IS NULL) THEN
        EXIT;
    id = NEXT VALUE FOR mq_message_id;
    EXECUTE PROCEDURE imq_write_message(id, v_type, v_body, mq_utc_now(), p_run_at, v_priority, v_group_key, NULL, NULL, v_headers,
        'schedule');
    UPDATE mq_schedule SET last_at = :p_run_at, last_id = :id WHERE name = :p_name;
END
