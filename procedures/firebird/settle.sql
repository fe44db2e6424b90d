-- settle: a message is completed: delete it, or archive it when the policy says so.
-- Arguments:   p_id, p_attempt, p_reader, p_on_complete and p_ordered (the policy), p_done_at (of the whole batch)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_settle(17, 1, 'worker-1', 'delete', 0, mq_utc_now());
--
-- Whoever settles a message has taken it out of the ready table or out of a batch. A transaction that had it before and is
-- rolling back undoes its changes one by one: for a moment the place is free, but the message locked, and archived, still.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_settle (
    p_id bigint,
    p_attempt smallint,
    p_reader mq_name,
    p_on_complete varchar(7) CHARACTER SET ASCII,
    p_ordered smallint,
    p_done_at timestamp
)
AS
DECLARE c_seconds integer = 2;
DECLARE v_until timestamp;
DECLARE v_done integer = 0;
DECLARE v_type mq_name;
DECLARE v_group_key mq_name;
DECLARE v_dedup_key mq_name;
BEGIN
    WHILE (p_on_complete = 'archive' AND v_done = 0) DO
    BEGIN
        INSERT INTO mq_archive (id, completed_at, created_at, priority, attempts, type, body, headers, group_key, dedup_key,
            source, reader)
        SELECT id, :p_done_at, created_at, priority, :p_attempt, type, body, headers, group_key, dedup_key, source, :p_reader
        FROM mq_message
        WHERE id = :p_id;
        v_done = 1;
        WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
        BEGIN
            v_until = COALESCE(v_until, DATEADD(c_seconds SECOND TO mq_utc_now()));
            IF (mq_utc_now() > v_until) THEN
                EXCEPTION;
        END
    END
    v_done = 0;
    WHILE (v_done = 0) DO
    BEGIN
        DELETE FROM mq_message WHERE id = :p_id RETURNING type, group_key, dedup_key INTO v_type, v_group_key, v_dedup_key;
        v_done = 1;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            v_until = COALESCE(v_until, DATEADD(c_seconds SECOND TO mq_utc_now()));
            IF (mq_utc_now() > v_until) THEN
                EXCEPTION;
        END
    END
    IF (v_dedup_key IS NOT NULL) THEN
        DELETE FROM mq_dedup WHERE type = :v_type AND dedup_key = :v_dedup_key;
    IF (p_ordered = 1) THEN
        EXECUTE PROCEDURE mq_free_groups(v_type, v_group_key, p_id);
END^

SET TERM ; ^
