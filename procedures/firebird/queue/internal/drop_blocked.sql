-- drop_blocked: delete the tickets that a claim has found of blocked groups, after making sure that each group gets a new one.
-- Transaction: locks in an autonomous one, which ends at once
--
-- mq_met has the groups, in state B. A call that unblocks a group deletes a row of mq_group_lock and issues a ticket for the
-- messages that it sees. It may have begun before the message of this ticket was committed. So the rows are updated first. If
-- that succeeds and the group is still blocked, each call that deletes one of them begins, or is restarted, after that, and sees
-- the message: state K, the tickets may go. Otherwise state X: leave the group alone.
CREATE OR ALTER PROCEDURE imq_drop_blocked (p_type mq_name)
AS
DECLARE v_ids varchar(32000) CHARACTER SET ASCII = '';
DECLARE v_states varchar(2000) CHARACTER SET ASCII = '';
DECLARE v_at integer = 1;
DECLARE v_id bigint;
DECLARE v_priority smallint;
DECLARE v_run_at timestamp;
DECLARE v_group_key mq_name;
DECLARE v_state char(1) CHARACTER SET ASCII;
BEGIN
    FOR SELECT id FROM mq_met WHERE state = 'B' ORDER BY group_key ROWS 1500 INTO v_id DO
        v_ids = v_ids || LPAD(v_id, 19, '0');
    IN AUTONOMOUS TRANSACTION DO
        WHILE (v_at < CHAR_LENGTH(v_ids)) DO
        BEGIN
            v_group_key = NULL;
            SELECT COALESCE(group_key, '') FROM mq_message WHERE id = CAST(SUBSTRING(:v_ids FROM :v_at FOR 19) AS bigint)
            INTO v_group_key;
            BEGIN
                UPDATE mq_group_lock SET id = id WHERE type = :p_type AND group_key = :v_group_key;
                v_state = IIF(imq_group_places(p_type, v_group_key, NULL) = 0, 'K', 'X');
                WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                    v_state = 'X';
            END
            v_states = v_states || v_state;
            v_at = v_at + 19;
        END
    v_at = 0;
    FOR SELECT id, priority, run_at FROM mq_met WHERE state = 'B' ORDER BY group_key ROWS 1500
        INTO v_id, v_priority, v_run_at AS CURSOR met
    DO
    BEGIN
        v_at = v_at + 1;
        v_state = SUBSTRING(v_states FROM v_at FOR 1);
        UPDATE mq_met SET state = :v_state WHERE CURRENT OF met;
        IF (v_state = 'K') THEN
            DELETE FROM mq_ready WHERE type = :p_type AND priority = :v_priority AND run_at = :v_run_at AND id = :v_id;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_state = 'X';
    END
END
