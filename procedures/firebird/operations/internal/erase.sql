-- erase: delete a message that no consumer holds.
-- Arguments:   p_type, p_id, p_states (the states to delete from: N, E or NE), p_grouped (the queue's policy)
-- Returns:     gone: 1; 0 when the message is held, is being claimed at this moment, or is in none of these states
CREATE OR ALTER PROCEDURE imq_erase (
    p_type mq_name, p_id bigint, p_states varchar(2) CHARACTER SET ASCII, p_grouped smallint
)
RETURNS (gone integer)
AS
DECLARE v_group_key mq_name; DECLARE v_dedup_key mq_name;
DECLARE v_place char(8) CHARACTER SET OCTETS;
BEGIN
    gone = 0;
    SELECT COALESCE(group_key, ''), dedup_key FROM mq_message WHERE id = :p_id INTO v_group_key, v_dedup_key;
    IF (v_group_key IS NULL) THEN
        EXIT;
    IF (p_states CONTAINING 'N') THEN
    BEGIN
        -- The delayed table first, because a claim may be promoting the message.
        BEGIN
            DELETE FROM mq_delayed WHERE id = :p_id;
            gone = ROW_COUNT;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                gone = 0;
        END
        IF (gone = 0 AND p_grouped = 1) THEN
        BEGIN
            DELETE FROM mq_grouped WHERE type = :p_type AND group_key = :v_group_key AND id = :p_id;
            gone = ROW_COUNT;
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                gone = 0;
        END
        -- In a queue with groups, delete only the tickets of messages that are already deleted.
        IF (gone = p_grouped) THEN
            FOR SELECT place FROM imq_find_ready(:p_type, :p_id) INTO v_place DO
            BEGIN
                DELETE FROM mq_ready WHERE RDB$DB_KEY = :v_place AND id = :p_id;
                gone = MAXVALUE(gone, ROW_COUNT);
                WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                    v_place = NULL;
            END
    END
    IF (gone = 0 AND p_states CONTAINING 'E') THEN
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
        IF (v_dedup_key IS NOT NULL) THEN
            DELETE FROM mq_dedup WHERE type = :p_type AND dedup_key = :v_dedup_key;
        IF (p_grouped = 1) THEN
            EXECUTE PROCEDURE imq_free_groups(p_type, v_group_key, p_id);
    END
END
