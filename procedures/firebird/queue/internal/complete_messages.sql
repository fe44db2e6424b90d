-- complete_messages: complete a message: delete it, or archive it if the queue's policy is archive.
--
-- The caller has removed the message from mq_ready or from its batch. A transaction that had removed it before may still be
-- rolling back, and undoes its changes one by one: for a moment the position is free, but the message is still locked and
-- archived. So nothing is written before the message is locked.
CREATE OR ALTER PROCEDURE imq_complete_messages (
    p_id bigint, p_attempt smallint, p_consumer mq_name, p_on_complete varchar(7) CHARACTER SET ASCII, p_grouped smallint,
    p_done_at timestamp
)
AS
DECLARE v_until timestamp;
DECLARE v_done integer = 0;
DECLARE v_has_steps smallint;
DECLARE v_id bigint;
DECLARE v_type mq_name; DECLARE v_group_key mq_name; DECLARE v_dedup_key mq_name;
BEGIN
    WHILE (v_done = 0) DO
    BEGIN
        IF (p_on_complete = 'archive') THEN
        BEGIN
            SELECT id FROM mq_message WHERE id = :p_id FOR UPDATE WITH LOCK INTO v_id;
            INSERT INTO mq_archive (id, completed_at, created_at, priority, attempts, type, body, headers, group_key,
                dedup_key, source, consumer, result, steps)
            SELECT m.id, :p_done_at, m.created_at, m.priority, :p_attempt, m.type, m.body, m.headers, m.group_key, m.dedup_key,
                m.source, :p_consumer, r.result, IIF(m.has_steps = 1, imq_steps_json(m.id), NULL)
            FROM mq_message AS m
            LEFT JOIN mq_result AS r ON r.id = m.id
            WHERE m.id = :p_id;
            DELETE FROM mq_result WHERE id = :p_id;
        END
        DELETE FROM mq_message WHERE id = :p_id RETURNING type, group_key, dedup_key, has_steps
        INTO v_type, v_group_key, v_dedup_key, v_has_steps;
        IF (v_has_steps = 1) THEN
        BEGIN
            DELETE FROM mq_step WHERE id = :p_id;
            DELETE FROM mq_cancelled WHERE id = :p_id;
        END
        v_done = 1;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec,
            GDSCODE unique_key_violation, GDSCODE no_dup DO
        BEGIN
            EXECUTE PROCEDURE imq_wait_to_repeat(v_until) RETURNING_VALUES v_until;
            IF (v_until IS NULL) THEN
                EXCEPTION;
        END
    END
    IF (v_dedup_key IS NOT NULL) THEN
        DELETE FROM mq_dedup WHERE type = :v_type AND dedup_key = :v_dedup_key;
    IF (p_grouped = 1) THEN
        EXECUTE PROCEDURE imq_free_groups(v_type, v_group_key, p_id);
END
