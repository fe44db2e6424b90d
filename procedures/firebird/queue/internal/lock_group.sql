-- lock_group: keep other claims away from a group until the transaction ends.
-- Arguments:   p_type, p_group_key ('' for none)
-- Returns:     locked: 1, or 0 when another transaction has it
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT
-- Example:     EXECUTE PROCEDURE mq_lock_group('invoice', 'customer-7') RETURNING_VALUES v_locked;
--
-- Whoever gets it sees what all claims before it have done at the group: see allowance. lock_group.5.sql is the body for Firebird 5.0 and
-- later.

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
    UPDATE mq_stripe SET n = n WHERE n = MOD(ABS(HASH(:p_type || ASCII_CHAR(10) || :p_group_key)), 16384);
    locked = ROW_COUNT;
    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        locked = 0;
END^

SET TERM ; ^
