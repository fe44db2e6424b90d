-- begin_call: join the caller's transaction or begin one, at the start of a procedure that changes data.
-- Arguments:   p_claims (1: the procedure claims or finishes messages, which needs READ COMMITTED)
-- Returns:     p_own: 1: the procedure has its own transaction; 0: it works in the caller's, after a savepoint; 2: it
--              works in the caller's, where no savepoint is possible
-- Transaction: its own transaction is READ COMMITTED, independent of the session's level

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_begin_call(IN p_claims tinyint, OUT p_own tinyint)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_join_call(0, p_own);
    IF p_own = 1 THEN
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        START TRANSACTION;
    ELSEIF p_claims THEN
        CALL imq_require_read_committed();
    END IF;
END
