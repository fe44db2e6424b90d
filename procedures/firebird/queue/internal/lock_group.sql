-- lock_group: keep other claims out of a group until this transaction ends.
-- Returns:     locked: 1; 0 when another transaction has locked the group, or a group that shares its stripe
--
-- The holder of the lock sees what all earlier claims of the group have done: see allowance.
CREATE OR ALTER PROCEDURE imq_lock_group (p_type mq_name, p_group_key mq_name)
RETURNS (locked integer)
AS
BEGIN
    locked = 0;
    -- See try_lock.
    /*!5 FOR SELECT 1 AS one FROM mq_stripe WHERE n = MOD(ABS(HASH(:p_type || ASCII_CHAR(10) || :p_group_key)), 16384)
        WITH LOCK SKIP LOCKED INTO locked AS CURSOR c
    DO
        locked = 1;
    EXIT; */
    UPDATE mq_stripe SET n = n WHERE n = MOD(ABS(HASH(:p_type || ASCII_CHAR(10) || :p_group_key)), 16384);
    locked = ROW_COUNT;
    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        locked = 0;
END
