-- change_message: replace or postpone a live message that has the dedup_key, if its state is N.
-- Returns:     changed: 1; 0 when nothing was changed: its state is not N, another transaction is claiming it, or it is due
--              later already
--
-- The caller prevents other changes of the message. Then the message is inserted where a new message with this run_at goes.
-- If its group was blocked by this message, the group is unblocked.
CREATE OR ALTER PROCEDURE imq_change_message (
    p_type mq_name, p_id bigint, p_on_conflict mq_text, p_now timestamp, p_run_at timestamp, p_priority smallint,
    p_body mq_text, p_headers mq_text
)
RETURNS (changed smallint)
AS
DECLARE v_grouped smallint; DECLARE v_replace smallint; DECLARE v_priority smallint; DECLARE v_attempts smallint;
DECLARE v_run_at timestamp;
DECLARE v_group_key mq_name;
DECLARE v_error mq_error;
BEGIN
    changed = 0;
    v_replace = IIF(p_on_conflict = 'replace', 1, 0);
    SELECT grouped FROM imq_policy(:p_type) INTO v_grouped;
    SELECT m.run_at, m.priority, COALESCE(m.group_key, '') FROM mq_message AS m WHERE m.id = :p_id
    INTO v_run_at, v_priority, v_group_key;
    EXECUTE PROCEDURE imq_leave_place(p_type, v_grouped, p_id, v_group_key,
        IIF(v_replace = 1, NULL, p_run_at), v_run_at) RETURNING_VALUES v_attempts, v_error, v_run_at;
    IF (v_attempts IS NULL) THEN
        EXIT;

    changed = 1;
    IF (v_replace = 1) THEN
    BEGIN
        UPDATE mq_message SET run_at = :p_run_at, priority = :p_priority, body = :p_body, headers = :p_headers WHERE id = :p_id;
        DELETE FROM mq_step WHERE id = :p_id;
        v_priority = p_priority;
        v_attempts = 0;
        v_error = NULL;
    END
    ELSE
        UPDATE mq_message SET run_at = :p_run_at WHERE id = :p_id;
    EXECUTE PROCEDURE imq_place_message(p_type, v_grouped, p_id, v_group_key, v_priority, p_run_at, p_now, v_attempts, v_error, 1);
END
