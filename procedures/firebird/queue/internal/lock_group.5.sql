-- lock_group: keep other claims away from a group until the transaction ends.
-- Arguments:   p_type, p_group_key ('' for none)
-- Returns:     locked: 1, or 0 when another transaction has it
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT
-- Example:     EXECUTE PROCEDURE mq_lock_group('invoice', 'customer-7') RETURNING_VALUES v_locked;
--
-- Whoever gets it sees what all claims before it have done at the group: see allowance.
--
-- This is the body for Firebird 5.0 and later, beside lock_group.sql: see try_lock.5.sql.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_lock_group (
    p_type mq_name,
    p_group_key mq_name
)
RETURNS (
    locked integer
)
AS
BEGIN
    locked = 0;
    FOR SELECT 1 AS one FROM mq_stripe
    WHERE n = MOD(ABS(HASH(:p_type || ASCII_CHAR(10) || :p_group_key)), 16384)
    WITH LOCK SKIP LOCKED INTO locked AS CURSOR c DO
        locked = 1;
END^

SET TERM ; ^
