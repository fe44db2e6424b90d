-- require_read_committed: refuse to claim or finish inside a transaction of another isolation level.
-- Arguments:   none
-- Returns:     nothing
-- Errors:      50001 wrong_isolation
-- Transaction: the session must be READ COMMITTED; what SET TRANSACTION said for one transaction cannot be seen from here
-- Example:     CALL mq_require_read_committed();

DROP PROCEDURE IF EXISTS mq_require_read_committed;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_require_read_committed(
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- At REPEATABLE READ a claim locks the gaps between the rows: senders wait for it, and claims end in deadlocks.
    DECLARE v_level varchar(20) CHARACTER SET ascii DEFAULT /*M! @@SESSION.tx_isolation */ /*!80000 @@SESSION.transaction_isolation */;
    IF v_level <> 'READ-COMMITTED' THEN
        CALL mq_raise_error('wrong_isolation', CONCAT('this session is ', REPLACE(v_level, '-', ' '),
            ': SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED'));
    END IF;
END//

DELIMITER ;
