-- require_use: refuse a caller without these rights on a user's table.
-- Arguments:   p_schema, p_table (names as in the catalog), p_rights (a list: Select, Update, Delete, Trigger), p_maker
--              (the user name that registered the table)
-- Transaction: reads the server's grant tables
--
-- A procedure with its owner's rights cannot see which account called it, only the name and host of the login. So every
-- account that the server could have chosen for this login must have the rights, directly or through its roles: the check
-- never assumes more rights than the caller has. Rights on single columns do not count, and global rights do not count
-- with partial_revokes on. MariaDB stores rights in tables of an engine without savepoints: a transaction that reads one
-- cannot set a savepoint until it ends. So there, inside a caller's transaction, rights seen in the last minute are
-- accepted. If mq_owner may not read the rights, only the user p_maker passes.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_use(
    IN p_schema varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin,
    IN p_table varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin, IN p_rights varchar(40) CHARACTER SET utf8mb4,
    IN p_maker varchar(128) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
checking: BEGIN
    DECLARE v_host varchar(255) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT LOWER(SUBSTRING_INDEX(USER(), '@', -1));
    DECLARE v_user varchar(128) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin
        DEFAULT LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1);
    DECLARE v_is_name tinyint DEFAULT v_host NOT REGEXP '^[0-9.]+$' AND LOCATE(':', v_host) = 0;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_seen datetime(6);
    DECLARE v_global, v_unknown tinyint DEFAULT 0;
    DECLARE v_wanted, v_has, v_count int DEFAULT 0;
    DECLARE v_everybody text CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_who varchar(400) CHARACTER SET utf8mb4;
    SET v_wanted = (FIND_IN_SET('Select', p_rights) > 0) + 2 * (FIND_IN_SET('Update', p_rights) > 0)
        + 4 * (FIND_IN_SET('Delete', p_rights) > 0) + 8 * (FIND_IN_SET('Trigger', p_rights) > 0), v_global = 1;
    /*!80016 SET v_global = NOT @@GLOBAL.partial_revokes,
        v_everybody = REPLACE(REPLACE(REPLACE(@@GLOBAL.mandatory_roles, '`', ''), '''', ''), ' ', ''); */
    /*M! IF COALESCE(@mq_joined, 1) THEN
        SELECT COUNT(*), COALESCE(MAX(rights), 0) INTO v_count, v_has
        FROM mq_allowed
        WHERE account = CONCAT(v_user, '@', v_host) AND table_schema = p_schema AND table_name = p_table
            AND seen_at BETWEEN v_now - INTERVAL 60 SECOND AND v_now;
    END IF; */
    IF v_count > 0 AND (v_has & v_wanted) = v_wanted THEN
        LEAVE checking;
    END IF;
    BEGIN
        DECLARE EXIT HANDLER FOR 1142, 1143, 1356 SET v_unknown = 1;
        WITH RECURSIVE named (user, host) AS (
            SELECT u.user, u.host
            FROM mysql.user AS u
            WHERE u.user IN (v_user, '') /*M! AND u.is_role = 'N' */
                AND (u.host IN ('', '%') OR LOCATE('/', u.host) > 0 OR v_host LIKE u.host
                    -- The address of a host that is given by name is not known.
                    OR v_is_name AND u.host REGEXP '^[0-9a-f.:%_]+$' AND u.host REGEXP '[.:]')
        ), account (user, host) AS (
            -- The server prefers an exact host to a pattern, and on the same host a user name to the anonymous user.
            SELECT n.user, n.host
            FROM named AS n
            WHERE (n.user <> '' OR NOT EXISTS (SELECT * FROM named AS o WHERE o.user <> '' AND o.host = n.host))
                AND (n.host NOT REGEXP '[%_/]' AND n.host <> ''
                    OR NOT EXISTS (SELECT * FROM named AS o WHERE o.user <> '' AND o.host = v_host))
        ), reach (of_user, of_host, user, host) AS (
            SELECT user, host, user, host FROM account
            /*M! UNION SELECT user, host, 'PUBLIC', '' FROM account */
            /*!80000 UNION SELECT a.user, a.host, u.user, u.host FROM account AS a JOIN mysql.user AS u
                ON FIND_IN_SET(CONCAT(u.user, '@', u.host), v_everybody) OR u.host = '%' AND FIND_IN_SET(u.user, v_everybody) */
            UNION
            SELECT r.of_user, r.of_host, /*M! e.role, '' */ /*!80000 e.from_user, e.from_host */
            FROM reach AS r
            JOIN /*M! mysql.roles_mapping AS e ON e.user = r.user AND e.host = r.host */
                /*!80000 mysql.role_edges AS e ON e.to_user = r.user AND e.to_host = r.host */
        )
        SELECT COUNT(*), COALESCE(BIT_AND(b.bits), 0),
            MIN(IF((b.bits & v_wanted) = v_wanted, NULL, CONCAT('''', b.of_user, '''@''', b.of_host, '''')))
        INTO v_count, v_has, v_who
        FROM (
            SELECT r.of_user, r.of_host, BIT_OR(
                IF(v_global, (g.select_priv = 'Y') + 2 * (g.update_priv = 'Y') + 4 * (g.delete_priv = 'Y')
                    + 8 * (g.trigger_priv = 'Y'), 0)
                | COALESCE(d.bits, 0)
                | COALESCE((FIND_IN_SET('Select', t.table_priv) > 0) + 2 * (FIND_IN_SET('Update', t.table_priv) > 0)
                    + 4 * (FIND_IN_SET('Delete', t.table_priv) > 0) + 8 * (FIND_IN_SET('Trigger', t.table_priv) > 0), 0)) AS bits
            FROM reach AS r
            JOIN mysql.user AS g ON g.user = r.user AND g.host = r.host
            LEFT JOIN (
                -- The server uses only one of several matching patterns: only rights that all of them give count.
                SELECT p.user, p.host, BIT_AND((p.select_priv = 'Y') + 2 * (p.update_priv = 'Y') + 4 * (p.delete_priv = 'Y')
                    + 8 * (p.trigger_priv = 'Y')) AS bits
                FROM mysql.db AS p
                WHERE p_schema LIKE p.db
                GROUP BY p.user, p.host
            ) AS d ON d.user = r.user AND d.host = r.host
            LEFT JOIN mysql.tables_priv AS t ON t.user = r.user AND t.host = r.host AND t.db = p_schema AND t.table_name = p_table
            GROUP BY r.of_user, r.of_host
        ) AS b;
    END;
    IF v_unknown AND BINARY COALESCE(p_maker, '') <> BINARY v_user THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('only for user ', LEFT(p_maker, 32),
            ': mq_owner may not read the rights of others, see the guide'));
    ELSEIF NOT v_unknown AND (v_count = 0 OR (v_has & v_wanted) <> v_wanted) THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('GRANT ', REPLACE(UPPER(p_rights), ',', ', '), ' ON `',
            LEFT(p_schema, 30), '`.`', LEFT(p_table, 40),
            '` TO ', COALESCE(v_who, CONCAT('''', v_user, '''@''', v_host, ''''))));
    END IF;
    /*M! IF NOT v_unknown THEN
        SELECT MAX(seen_at) INTO v_seen FROM mq_allowed
        WHERE account = CONCAT(v_user, '@', v_host) AND table_schema = p_schema AND table_name = p_table AND rights = v_has;
        IF COALESCE(v_seen NOT BETWEEN v_now - INTERVAL 20 SECOND AND v_now, 1) THEN
            REPLACE INTO mq_allowed (account, table_schema, table_name, rights, seen_at)
            VALUES (CONCAT(v_user, '@', v_host), p_schema, p_table, v_has, v_now);
        END IF;
    END IF; */
END
