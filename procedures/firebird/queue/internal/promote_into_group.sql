-- promote_into_group: add a due message to its group.
-- Returns:     joined: 1; 0 when a claim that had promoted the message is rolling back
-- Transaction: joins the caller's, which has locked the message's row of mq_delayed and deletes it afterwards
--
-- A rollback undoes one change after the other: the message may be delayed again before it has left its group. The caller
-- deletes the row of mq_delayed last. During such a rollback the undo of a DELETE can fail (see settle), and the message
-- would be lost. The undo of an INSERT that is refused here can fail too; then the message is already in its group.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_promote_into_group (p_type mq_name, p_id bigint, p_attempts smallint)
RETURNS (joined integer)
AS
DECLARE v_group_key mq_name = '';
BEGIN
    SELECT COALESCE(group_key, '') FROM mq_message WHERE id = :p_id INTO v_group_key;
    IF (NOT EXISTS (SELECT * FROM mq_grouped WHERE type = :p_type AND group_key = :v_group_key AND id = :p_id)) THEN
        INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:p_type, :v_group_key, :p_id, :p_attempts);
    -- A message that blocked its group returns: unblock the group; the message is its first one again.
    DELETE FROM mq_group_lock WHERE type = :p_type AND group_key = :v_group_key AND id = :p_id;
    joined = 1;
    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec,
        GDSCODE unique_key_violation, GDSCODE no_dup DO
        joined = 0;
END^
SET TERM ; ^
