-- grants: the accounts, and the rights of mq_owner; the other areas' files grant the rest.

-- A dump contains no accounts: if they are missing, this needs CREATE USER.
CREATE USER IF NOT EXISTS 'mq_owner'@'localhost' /*!80000 IDENTIFIED WITH caching_sha2_password
    AS '$A$005$THISISACOMBINATIONOFINVALIDSALTANDPASSWORDTHATMUSTNEVERBRBEUSED' */ ACCOUNT LOCK;
CREATE ROLE IF NOT EXISTS mq_producer;
CREATE ROLE IF NOT EXISTS mq_consumer;
CREATE ROLE IF NOT EXISTS mq_operator;
CREATE ROLE IF NOT EXISTS mq_viewer;

GRANT SELECT ON mq_installed TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_allowed TO 'mq_owner'@'localhost';

DROP PROCEDURE IF EXISTS mq_grant_more;
DELIMITER //
CREATE PROCEDURE mq_grant_more()
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_grant text CHARACTER SET utf8mb4;
    DECLARE v_end tinyint DEFAULT 0;
    -- On MySQL even the definer of a procedure needs the right to call it.
    DECLARE c_own CURSOR FOR
        SELECT CONCAT('GRANT EXECUTE ON PROCEDURE ', r.routine_name, ' TO ''mq_owner''@''localhost''')
        FROM information_schema.routines AS r
        INNER JOIN mq_installed AS i ON r.routine_name IN (CONCAT('mq_', i.name), CONCAT('imq_', i.name))
        WHERE r.routine_schema = DATABASE() AND i.kind = 'procedure'
        UNION ALL
        -- The triggers of watched tables, which a dump contains.
        SELECT DISTINCT CONCAT('GRANT SELECT, TRIGGER ON `', REPLACE(event_object_schema, '`', '``'), '`.`',
            REPLACE(event_object_table, '`', '``'), '` TO ''mq_owner''@''localhost''')
        FROM information_schema.triggers
        WHERE trigger_schema = DATABASE() AND definer = 'mq_owner@localhost' AND action_statement LIKE '%imq\_send\_changes(%';
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = 1;
    OPEN c_own;
    FETCH c_own INTO v_grant;
    WHILE NOT v_end DO
        SET @mq_statement = v_grant;
        PREPARE mq_statement FROM @mq_statement;
        BEGIN
            -- The installing account may lack the right on a user's table.
            DECLARE CONTINUE HANDLER FOR 1044, 1142 BEGIN END;
            EXECUTE mq_statement;
        END;
        DEALLOCATE PREPARE mq_statement;
        FETCH c_own INTO v_grant;
    END WHILE;
    CLOSE c_own;
    -- The procedures read from the server's grant tables which accounts may use a user's table: names and rights, no
    -- passwords. If the installing account cannot grant this, a polling table or a feed works only for the user name that
    -- created it; see the guide.
    BEGIN
        DECLARE CONTINUE HANDLER FOR 1044, 1045, 1142, 1143, 1227 BEGIN END;
        GRANT SELECT (host, user, select_priv, update_priv, delete_priv, trigger_priv /*M! , is_role */) ON mysql.user TO 'mq_owner'@'localhost';
        GRANT SELECT (host, db, user, select_priv, update_priv, delete_priv, trigger_priv) ON mysql.db TO 'mq_owner'@'localhost';
        GRANT SELECT (host, db, user, table_name, table_priv) ON mysql.tables_priv TO 'mq_owner'@'localhost';
        /*M! GRANT SELECT (host, user, role) ON mysql.roles_mapping TO 'mq_owner'@'localhost'; */
        /*!80000 GRANT SELECT (from_host, from_user, to_host, to_user) ON mysql.role_edges TO 'mq_owner'@'localhost'; */
        -- For transaction_level, which reads the isolation level of one transaction there.
        /*M! GRANT PROCESS ON *.* TO 'mq_owner'@'localhost'; */
        /*!80016 GRANT SELECT ON performance_schema.events_transactions_current TO 'mq_owner'@'localhost'; */
    END;
END//
DELIMITER ;

CALL mq_grant_more();
DROP PROCEDURE mq_grant_more;

-- Procedures that run with the caller's rights call these. They check the account's rights themselves.
CALL imq_grant_to('mq_consumer mq_operator',
    'raise_error require_name require_range require_key require_read_committed begin_call end_call undo_call
     consumer_name read_outcomes split_names row_json run read_columns run_template',
    '');
CALL imq_grant_to('mq_operator', 'find_table find_columns find_one_column require_rights read_options', '');
CALL imq_grant_to('mq_viewer', 'raise_error require_name', '');
