-- require_read_committed: refuse to claim or finish inside a transaction of another isolation level.
-- Transaction: the session must be READ COMMITTED; otherwise the open transaction's level is checked, if it can be seen

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_read_committed()
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- At REPEATABLE READ a claim takes gap locks: senders wait for it, and claims end in deadlocks.
    DECLARE v_level varchar(20) CHARACTER SET ascii DEFAULT /*M! @@SESSION.tx_isolation */ /*!80000 @@SESSION.transaction_isolation */;
    DECLARE v_running varchar(20) CHARACTER SET utf8mb4;
    IF v_level <> 'READ-COMMITTED' THEN
        -- SET TRANSACTION may have set another level for this transaction only.
        CALL imq_transaction_level(v_running);
        IF COALESCE(v_running, '') <> 'READ COMMITTED' THEN
            CALL imq_raise_error('wrong_isolation', CONCAT(IF(v_running IS NULL, 'this session is ', 'this transaction is '),
                COALESCE(v_running, REPLACE(v_level, '-', ' ')), ': SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED first'));
        END IF;
    END IF;
END
