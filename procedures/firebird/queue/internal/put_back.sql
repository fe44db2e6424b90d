-- put_back: make a message ready again, at the position where it was sent; delete one that was cancelled. The caller then
--           lowers the mark and wakes consumers.
CREATE OR ALTER PROCEDURE imq_put_back (p_type mq_name, p_id bigint, p_attempts smallint, p_grouped smallint)
AS
DECLARE v_priority smallint;
DECLARE v_run_at timestamp;
DECLARE v_group_key mq_name;
DECLARE v_gone integer;
BEGIN
    EXECUTE PROCEDURE imq_drop_cancelled(p_type, p_id, p_grouped) RETURNING_VALUES v_gone;
    SELECT priority, run_at, COALESCE(group_key, '') FROM mq_message WHERE id = :p_id INTO v_priority, v_run_at, v_group_key;
    IF (v_run_at IS NULL) THEN
        EXIT;
    IF (p_grouped = 1) THEN
    BEGIN
        INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:p_type, :v_group_key, :p_id, :p_attempts);
        -- A dead letter without a place brings its own ticket, as a new message does: a call that finishes the active message
        -- of its group at this moment does not see it.
        IF (NOT EXISTS (SELECT * FROM mq_group_lock WHERE type = :p_type AND group_key = :v_group_key AND id = :p_id)) THEN
            EXECUTE PROCEDURE imq_place_ready(p_type, v_priority, v_run_at, p_id, p_attempts) RETURNING_VALUES v_run_at;
        EXECUTE PROCEDURE imq_free_groups(p_type, v_group_key, p_id);
        EXIT;
    END
    EXECUTE PROCEDURE imq_place_ready(p_type, v_priority, v_run_at, p_id, p_attempts) RETURNING_VALUES v_run_at;
END
