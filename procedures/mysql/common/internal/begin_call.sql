-- begin_call: the start of a procedure that changes something: join the caller's transaction, or begin one.
-- Arguments:   p_claims (1: the procedure claims or finishes, which needs READ COMMITTED)
-- Returns:     p_own: 1 when the procedure has a transaction of its own, 0 when it works under a savepoint of the caller's, 2
--              when it works in the caller's and there can be no savepoint
-- Errors:      50001 wrong_isolation, before anything is done
-- Transaction: READ COMMITTED when it is our own, whatever the session has
-- Example:     CALL mq_begin_call(1, v_own); ... CALL mq_end_call(v_own);

DROP PROCEDURE IF EXISTS mq_begin_call;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_begin_call(
    IN p_claims tinyint,
    OUT p_own tinyint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    CALL mq_join_call(0, p_own);
    IF p_own = 1 THEN
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        START TRANSACTION;
    ELSEIF p_claims THEN
        CALL mq_require_read_committed();
    END IF;
END//

DELIMITER ;
