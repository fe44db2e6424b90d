-- remove_ready: remove one ready message that is not claimed from mq_ready.
-- Returns:     type, attempt (the number of the next attempt) and consumer (the caller); NULL when the message is not ready,
--              is being claimed, or its group is blocked in an ordered queue
CREATE OR ALTER PROCEDURE imq_remove_ready (p_id bigint)
RETURNS (type mq_name, attempt smallint, consumer mq_name)
AS
DECLARE v_type mq_name; DECLARE v_group_key mq_name;
DECLARE v_grouped smallint; DECLARE v_ordered smallint;
DECLARE v_head bigint;
DECLARE v_locked integer = 1;
DECLARE v_attempts smallint;
DECLARE v_error mq_error;
DECLARE v_due_at timestamp;
BEGIN
    SELECT m.type, COALESCE(m.group_key, '') FROM mq_message AS m WHERE m.id = :p_id INTO v_type, v_group_key;
    IF (v_type IS NULL) THEN
        EXIT;
    SELECT grouped, ordered FROM imq_policy(:v_type) INTO v_grouped, v_ordered;
    IF (v_grouped = 1) THEN
    BEGIN
        IF (v_ordered = 1) THEN
            EXECUTE PROCEDURE imq_lock_group(v_type, v_group_key) RETURNING_VALUES v_locked;
        SELECT l.id FROM mq_group_lock AS l WHERE l.type = :v_type AND l.group_key = :v_group_key AND l.id = :p_id ROWS 1
        INTO v_head;
        IF (v_locked = 0 OR v_ordered = 1 AND EXISTS (
            SELECT * FROM mq_group_lock AS l WHERE l.type = :v_type AND l.group_key = :v_group_key AND l.id <> :p_id
        )) THEN
            EXIT;
    END
    -- A due message may still be delayed: the rollback of the take also undid its promotion.
    IF (EXISTS (SELECT * FROM mq_delayed WHERE id = :p_id AND run_at > mq_utc_now())) THEN
        EXIT;
    BEGIN
        EXECUTE PROCEDURE imq_leave_place(v_type, v_grouped, p_id, v_group_key, NULL, NULL)
            RETURNING_VALUES v_attempts, v_error, v_due_at;
        IF (v_attempts IS NOT NULL AND v_grouped = 1 AND v_head IS NULL) THEN
            -- As after a claim: free_groups deletes the row and issues a ticket.
            INSERT INTO mq_group_lock (type, group_key, id) VALUES (:v_type, :v_group_key, :p_id);
        -- A unique violation means that a claim of the message is rolling back.
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec,
            GDSCODE unique_key_violation, GDSCODE no_dup DO
            v_attempts = NULL;
    END
    IF (v_attempts IS NOT NULL) THEN
    BEGIN
        type = v_type;
        attempt = v_attempts + 1;
        consumer = imq_consumer_name(NULL);
    END
END
