-- transaction_level: the isolation level of the transaction that is open, which SET TRANSACTION may have set for it alone.
-- Arguments:   none
-- Returns:     p_level: READ COMMITTED, REPEATABLE READ ...; NULL when it cannot be known
-- Errors:      none
-- Transaction: an open one, which keeps a savepoint mq_call; on MariaDB it may wait for 0.1 s
-- Example:     CALL mq_transaction_level(v_level);
--
-- No variable shows it. Two places do, to which mq_owner needs a right: MySQL's performance schema, and for MariaDB, where that
-- is mostly off, innodb_trx. This is filled again only when nobody has read it for 0.1 s, and may show an earlier transaction of
-- the session. Neither is believed without a proof that it is about this moment: the first must count a savepoint that is set
-- between two reads, and the second must show the text of this very statement, in which the server has written a variable: a new
-- UUID. Several sessions that ask for the second wait for each other: each read would put off the next filling.
-- One filling answers all that are waiting, because their text is there, too.

DROP PROCEDURE IF EXISTS mq_transaction_level;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_transaction_level(
    OUT p_level varchar(20) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- Each but the first after a tenth of a second: an administrator's tools may read it as well.
    DECLARE c_tries int DEFAULT 5;
    DECLARE v_before, v_after bigint;
    DECLARE v_level varchar(20) CHARACTER SET utf8mb4;
    DECLARE v_proof varchar(36) CHARACTER SET utf8mb4 DEFAULT UUID();
    DECLARE v_tries int DEFAULT 0;
    DECLARE v_ignored int DEFAULT 0;
    -- MySQL 8.0.16 and later.
    /*!80016 BEGIN
        DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
        -- No right, or another server's tables.
        DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END;
        SELECT isolation_level, number_of_savepoints INTO v_level, v_before
        FROM performance_schema.events_transactions_current WHERE thread_id = PS_CURRENT_THREAD_ID() AND state = 'ACTIVE';
        SAVEPOINT mq_call;
        SELECT isolation_level, number_of_savepoints INTO v_level, v_after
        FROM performance_schema.events_transactions_current WHERE thread_id = PS_CURRENT_THREAD_ID() AND state = 'ACTIVE';
        IF v_after = v_before + 1 THEN
            SET p_level = v_level;
        END IF;
    END; */
    -- MariaDB.
    /*M! BEGIN
        DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END;
        -- A transaction that has only begun is not there yet.
        SELECT COUNT(*) INTO v_ignored FROM mq_queue WHERE type = '';
        -- The server writes the values of variables into the text of a statement, here and below.
        SELECT COALESCE(GET_LOCK('mq_innodb_trx', 2), LENGTH(v_proof)) INTO v_ignored;
        asking: LOOP
            SELECT MAX(trx_isolation_level) INTO p_level
            FROM information_schema.innodb_trx
            WHERE trx_mysql_thread_id = CONNECTION_ID() AND LOCATE(v_proof, trx_query) > 0;
            SET v_tries = v_tries + 1;
            IF p_level IS NOT NULL OR v_tries = c_tries THEN
                LEAVE asking;
            END IF;
            DO SLEEP(0.11);
        END LOOP;
    END;
    -- More than once: a call that was killed has kept its own.
    WHILE RELEASE_LOCK('mq_innodb_trx') DO
        SET v_ignored = v_ignored + 1;
    END WHILE; */
END//

DELIMITER ;
