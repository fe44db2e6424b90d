-- place_message: insert a message that leave_place has removed where a new message with this run_at goes: ready, or delayed
--                when it is not due yet; wake consumers.
-- Arguments:   p_error (of the last attempt), p_free (1: its group does not wait for it any longer)
CREATE OR ALTER PROCEDURE imq_place_message (
    p_type mq_name, p_grouped smallint, p_id bigint, p_group_key mq_name, p_priority smallint, p_run_at timestamp,
    p_now timestamp, p_attempts smallint, p_error mq_error, p_free smallint
)
AS
DECLARE v_run_at timestamp;
BEGIN
    IF (p_run_at > p_now) THEN
        INSERT INTO mq_delayed (id, type, run_at, priority, attempts, error)
        VALUES (:p_id, :p_type, :p_run_at, :p_priority, :p_attempts, :p_error);
    ELSE
    BEGIN
        IF (p_grouped = 1) THEN
            INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:p_type, :p_group_key, :p_id, :p_attempts);
        EXECUTE PROCEDURE imq_place_ready(p_type, p_priority, p_run_at, p_id, p_attempts) RETURNING_VALUES v_run_at;
        -- The low-water mark of a ring may be above this id, that of another queue above this run_at.
        EXECUTE PROCEDURE imq_lower_mark(p_type);
    END
    IF (p_grouped = 1 AND p_free = 1) THEN
        EXECUTE PROCEDURE imq_free_groups(p_type, p_group_key, p_id);
    EXECUTE PROCEDURE imq_wake(p_type);
END
