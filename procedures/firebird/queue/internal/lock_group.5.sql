-- lock_group: keep other claims out of a group until this transaction ends.
--
-- The holder of the lock sees what all earlier claims of the group have done: see allowance.
-- This variant for Firebird 5.0 and later replaces lock_group.sql: see try_lock.5.sql.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_lock_group (p_type mq_name, p_group_key mq_name)
RETURNS (locked integer)
AS
BEGIN
    locked = 0;
    FOR SELECT 1 AS one FROM mq_stripe
    WHERE n = MOD(ABS(HASH(:p_type || ASCII_CHAR(10) || :p_group_key)), 16384)
    WITH LOCK SKIP LOCKED INTO locked AS CURSOR c DO
        locked = 1;
END^
SET TERM ; ^
