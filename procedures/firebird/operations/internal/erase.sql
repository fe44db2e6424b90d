-- erase: delete a message that is new (p_state N) or dead (E); or A: the caller has ended its attempt.
-- Returns:     gone: 1; 0 when the message is not in this state, or is being claimed at this moment
CREATE OR ALTER PROCEDURE imq_erase (
    p_type mq_name, p_id bigint, p_state varchar(1) CHARACTER SET ASCII, p_grouped smallint
)
RETURNS (gone integer)
AS
DECLARE v_group_key mq_name; DECLARE v_dedup_key mq_name;
DECLARE v_attempts smallint;
DECLARE v_error mq_error;
DECLARE v_due_at timestamp;
BEGIN
    gone = 0;
    SELECT COALESCE(group_key, ''), dedup_key FROM mq_message WHERE id = :p_id INTO v_group_key, v_dedup_key;
    IF (v_group_key IS NULL) THEN
        EXIT;
    IF (p_state = 'N') THEN
    BEGIN
        EXECUTE PROCEDURE imq_leave_place(p_type, p_grouped, p_id, v_group_key, NULL, NULL)
            RETURNING_VALUES v_attempts, v_error, v_due_at;
        gone = IIF(v_attempts IS NULL, 0, 1);
    END
    ELSE IF (p_state = 'A') THEN
        gone = 1;
    ELSE
    BEGIN
        DELETE FROM mq_dead WHERE id = :p_id;
        gone = ROW_COUNT;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            gone = 0;
    END
    IF (gone = 1) THEN
    BEGIN
        DELETE FROM mq_message WHERE id = :p_id;
        DELETE FROM mq_result WHERE id = :p_id;
        DELETE FROM mq_step WHERE id = :p_id;
        DELETE FROM mq_cancelled WHERE id = :p_id;
        IF (v_dedup_key IS NOT NULL) THEN
            DELETE FROM mq_dedup WHERE type = :p_type AND dedup_key = :v_dedup_key;
        IF (p_grouped = 1) THEN
            EXECUTE PROCEDURE imq_free_groups(p_type, v_group_key, p_id);
    END
END
