-- promote: move due messages from mq_delayed to mq_ready.
-- Returns:     moved: number of messages; first_run_at: their earliest run_at in mq_ready, or NULL
-- Transaction: joins the caller's, which is NO WAIT; skips messages that another claim is promoting
--
-- In a grouped queue, the message is first locked, then added to its group, and its row of mq_delayed is deleted last. A
-- rollback undoes one change after the other: the message may be delayed again before it has left its group. The undo of a
-- DELETE could then fail, and the message would be lost. The undo of an INSERT that is refused here can fail too; then the
-- message is already in its group.
CREATE OR ALTER PROCEDURE imq_promote (
    p_type mq_name, p_after timestamp, p_until timestamp, p_size integer, p_grouped smallint
)
RETURNS (moved integer, first_run_at timestamp)
AS
DECLARE v_id bigint;
DECLARE v_run_at timestamp;
DECLARE v_priority smallint; DECLARE v_attempts smallint;
DECLARE v_group_key mq_name;
DECLARE v_mine integer;
BEGIN
    moved = 0;
    FOR SELECT id, run_at, priority, attempts
        FROM mq_delayed
        WHERE type = :p_type AND run_at >= :p_after AND run_at <= :p_until
        PLAN (mq_delayed ORDER mq_delayed_due)
        ORDER BY type, run_at, id
        /*!5 WITH LOCK SKIP LOCKED */
        INTO v_id, v_run_at, v_priority, v_attempts AS CURSOR c
    DO
    BEGIN
        v_mine = 1;
        BEGIN
            IF (p_grouped = 0) THEN
                DELETE FROM mq_delayed WHERE CURRENT OF c;
            ELSE
            BEGIN
                v_mine = 0;
                SELECT 1 FROM mq_delayed WHERE id = :v_id WITH LOCK INTO v_mine;
                IF (v_mine = 1) THEN
                BEGIN
                    v_group_key = '';
                    SELECT COALESCE(group_key, '') FROM mq_message WHERE id = :v_id INTO v_group_key;
                    IF (NOT EXISTS (
                        SELECT * FROM mq_grouped WHERE type = :p_type AND group_key = :v_group_key AND id = :v_id
                    )) THEN
                        INSERT INTO mq_grouped (type, group_key, id, attempts)
                        VALUES (:p_type, :v_group_key, :v_id, :v_attempts);
                    -- A message that blocked its group returns: unblock the group; the message is its first one again.
                    DELETE FROM mq_group_lock WHERE type = :p_type AND group_key = :v_group_key AND id = :v_id;
                    DELETE FROM mq_delayed WHERE id = :v_id;
                END
            END
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec,
                GDSCODE unique_key_violation, GDSCODE no_dup DO
                v_mine = 0;
        END
        IF (v_mine = 1) THEN
        BEGIN
            EXECUTE PROCEDURE imq_place_ready(p_type, v_priority, v_run_at, v_id, v_attempts) RETURNING_VALUES v_run_at;
            first_run_at = COALESCE(first_run_at, v_run_at);
            moved = moved + 1;
        END
        IF (moved >= p_size) THEN
            LEAVE;
    END
END
