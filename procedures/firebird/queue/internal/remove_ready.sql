-- remove_ready: remove one ready message that is not claimed from mq_ready.
-- Returns:     type, attempt (the number of the next attempt) and reader (the caller); NULL when the message is not ready,
--              is being claimed, or its group is blocked in an ordered queue
CREATE OR ALTER PROCEDURE imq_remove_ready (p_id bigint)
RETURNS (type mq_name, attempt smallint, reader mq_name)
AS
DECLARE v_type mq_name; DECLARE v_group_key mq_name;
DECLARE v_grouped smallint; DECLARE v_ordered smallint;
DECLARE v_head bigint;
DECLARE v_locked integer = 1;
DECLARE v_attempts smallint;
DECLARE v_place char(8) CHARACTER SET OCTETS;
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
        IF (v_locked = 0 OR v_ordered = 1 AND v_head IS NULL AND imq_group_places(v_type, v_group_key, 1) = 0) THEN
            EXIT;
    END

    BEGIN
        -- A due message may still be delayed: the rollback of the take also undid its promotion. Check this before
        -- mq_ready, because a claim may be promoting the message.
        BEGIN
            DELETE FROM mq_delayed WHERE id = :p_id AND run_at <= mq_utc_now() RETURNING attempts INTO v_attempts;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                v_attempts = NULL;
        END
        IF (v_attempts IS NULL AND v_head IS NULL AND v_grouped = 1) THEN
            DELETE FROM mq_grouped WHERE type = :v_type AND group_key = :v_group_key AND id = :p_id
            RETURNING attempts INTO v_attempts;
        ELSE IF (v_attempts IS NULL AND v_head IS NULL) THEN
            FOR SELECT place FROM imq_find_ready(:v_type, :p_id) INTO v_place DO
                DELETE FROM mq_ready WHERE RDB$DB_KEY = :v_place AND id = :p_id RETURNING attempts INTO v_attempts;
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
        reader = imq_reader_name(NULL);
    END
END
