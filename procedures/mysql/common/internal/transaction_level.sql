-- transaction_level: the isolation level of the open transaction, which SET TRANSACTION may have set.
-- Returns:     p_level: READ COMMITTED, REPEATABLE READ ...; NULL when it cannot be determined
-- Transaction: needs an open one, and leaves a savepoint mq_call in it; on MariaDB the call may wait for 0.1 s, or 0.25 s
--              more while another session holds its lock
--
-- No variable shows this level. Two tables do, and mq_owner needs a right on them: MySQL's performance schema, and
-- innodb_trx on MariaDB, where the performance schema is usually off. The server refreshes innodb_trx only when nobody
-- has read it for 0.1 s, so it may show an earlier transaction of the session. The call accepts a result only with a
-- proof that it is current. In the performance schema, the count of savepoints must rise when this call sets one. In
-- innodb_trx, the text of this statement must appear, with a new UUID that the server writes in place of a variable.
-- Sessions that read innodb_trx wait for each other, because each read delays the next refresh. One refresh answers all
-- waiting sessions.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_transaction_level(OUT p_level varchar(20) CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- Each try but the first waits a tenth of a second: an administrator's tools may also read the table.
    DECLARE c_tries int DEFAULT 5;
    DECLARE v_before, v_after bigint;
    DECLARE v_level varchar(20) CHARACTER SET utf8mb4;
    DECLARE v_proof varchar(36) CHARACTER SET utf8mb4 DEFAULT UUID();
    DECLARE v_tries, v_ignored int DEFAULT 0;
    -- MySQL 8.0.16 and later.
    /*!80016 BEGIN
        DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
        -- No right, or a server without these tables.
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
        -- A transaction that has done nothing yet is not listed.
        SELECT COUNT(*) INTO v_ignored FROM mq_queue WHERE type = '';
        -- The server writes the values of variables into the text of the statement, here and below. A short wait: any login
        -- can hold a lock of this name. Its holder needs 0.11 s; without the lock the result is as reliable, but may come later.
        SELECT COALESCE(GET_LOCK('mq_innodb_trx', 0.25), LENGTH(v_proof)) INTO v_ignored;
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
    -- More than one release: a killed call still holds its lock.
    WHILE RELEASE_LOCK('mq_innodb_trx') DO
        SET v_ignored = v_ignored + 1;
    END WHILE; */
END
