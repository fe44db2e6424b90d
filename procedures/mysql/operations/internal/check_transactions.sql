-- check_transactions: the checks of queue_health on open transactions and the row versions that they keep.
-- Arguments:   p_checks: a JSON array of [name, verdict, value, unit, detail]
-- Returns:     p_checks, with these checks appended
-- Transaction: reads only; sees other sessions after GRANT PROCESS ON *.* TO 'mq_owner'@'localhost'

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_check_transactions(INOUT p_checks longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_value double;
    DECLARE v_detail longtext CHARACTER SET utf8mb4;
    DECLARE v_no_right varchar(200) CHARACTER SET utf8mb4
        DEFAULT 'not visible to mq_owner: GRANT PROCESS ON *.* TO ''mq_owner''@''localhost''';
    -- An old snapshot prevents the cleanup of every message deleted since.
    BEGIN
        DECLARE EXIT HANDLER FOR 1227
            SET p_checks = JSON_ARRAY_APPEND(p_checks, '$',
                JSON_ARRAY('oldest_transaction', 'warn', NULL, 'seconds', v_no_right));
        SET v_value = 0, v_detail = 'no other transaction is open';
        -- Not its statement, which may contain a body: operators may not see it.
        -- trx_started is in the time zone of the server's machine, not of the session, and in whole seconds.
        SELECT TIMESTAMPDIFF(MICROSECOND, t.trx_started, CONVERT_TZ(v_now, '+00:00', 'SYSTEM')) / 1e6,
            IF(t.trx_mysql_thread_id = 0,
                'a prepared transaction without a connection; to end it: XA RECOVER, then XA COMMIT or XA ROLLBACK',
                CONCAT('connection ', t.trx_mysql_thread_id, ', user ', COALESCE(p.user, '?'), ', host ',
                    COALESCE(p.host, '?'), ', database ', COALESCE(p.db, 'none'), ', ', COALESCE(p.command, '?'),
                    ' for ', COALESCE(p.time, '?'), ' s; while it is open, deleted rows are not purged; to end it: KILL ', t.trx_mysql_thread_id))
        INTO v_value, v_detail
        FROM information_schema.innodb_trx AS t
        LEFT JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id
        WHERE t.trx_mysql_thread_id <> CONNECTION_ID()
        ORDER BY t.trx_started LIMIT 1;
        SET p_checks = JSON_ARRAY_APPEND(p_checks, '$', JSON_ARRAY('oldest_transaction',
            CASE WHEN v_value > 3600 THEN 'bad' WHEN v_value > 300 THEN 'warn' ELSE 'ok' END, v_value, 'seconds', v_detail));
    END;

    BEGIN
        DECLARE EXIT HANDLER FOR 1227
            SET p_checks = JSON_ARRAY_APPEND(p_checks, '$',
                JSON_ARRAY('history_length', 'warn', NULL, 'transactions', v_no_right));
        SELECT /*M! MAX(variable_value) INTO v_value
        FROM information_schema.global_status WHERE variable_name = 'INNODB_HISTORY_LIST_LENGTH' */
        /*!80000 MAX(count) INTO v_value
        FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len' AND status = 'enabled' */;
        SET p_checks = JSON_ARRAY_APPEND(p_checks, '$', JSON_ARRAY('history_length',
            CASE WHEN v_value > 1000000 THEN 'bad' WHEN v_value > 100000 THEN 'warn' ELSE 'ok' END, v_value, 'transactions',
            IF(v_value > 100000, 'purge is behind, so deleted rows stay: end old transactions, or increase innodb_purge_threads',
                'purge keeps up with deletes')));
    END;
END
