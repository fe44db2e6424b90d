-- queue_health: check the server for problems that slow queues down or endanger messages.
-- Arguments:   none
-- Returns:     one row per check: name, verdict (ok, warn or bad), measured (what was measured; NULL: mq_owner may not see
--              it), unit, detail (what is wrong, and what to do)
-- Errors:      none
-- Transaction: reads only; sees other sessions after GRANT PROCESS ON *.* TO 'mq_owner'@'localhost'
-- Example:     CALL mq_queue_health();
--
-- A caller gets one result set, so the rows are first collected as JSON. Only MariaDB reads the comments that begin with
-- M!, and only MySQL those that begin with !80000.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_queue_health()
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_check int DEFAULT 0;
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_verdict, v_unit varchar(20) CHARACTER SET utf8mb4;
    DECLARE v_value double;
    DECLARE v_seconds, v_id bigint;
    DECLARE v_detail, v_fingerprints longtext CHARACTER SET utf8mb4;
    DECLARE v_checks longtext CHARACTER SET utf8mb4 DEFAULT '[]';
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    WHILE v_check < 11 DO
        SET v_check = v_check + 1, v_unit = NULL, v_name = ELT(v_check, 'transactions', 'expired_leases', 'stuck_groups',
            'stopped_groups', 'dead_dedup_keys', 'areas', 'changed_objects', 'missing_indexes', 'durability', 'binary_log', 'max_allowed_packet');
        BEGIN
            -- One check that fails, such as for a lack of rights, must not hide the others.
            DECLARE EXIT HANDLER FOR SQLEXCEPTION
            BEGIN
                GET DIAGNOSTICS CONDITION 1 v_detail = MESSAGE_TEXT;
                SET v_verdict = 'bad', v_value = NULL, v_unit = '', v_detail = CONCAT('this check failed: ', v_detail);
            END;
            CASE v_name
            WHEN 'transactions' THEN
                CALL imq_check_transactions(v_checks);

            WHEN 'expired_leases' THEN
                SELECT COUNT(*), COALESCE(TIMESTAMPDIFF(SECOND, MIN(b.lease_until), v_now), 0) INTO v_value, v_seconds
                FROM (SELECT lease_until FROM mq_batch WHERE lease_until <= v_now LIMIT 10000) AS b;
                SET v_verdict = CASE WHEN v_seconds > 3600 THEN 'bad' WHEN v_seconds > 60 THEN 'warn' ELSE 'ok' END,
                    v_unit = 'claims', v_detail = IF(v_value = 0, 'none', CONCAT('the oldest expired ', v_seconds,
                        ' s ago; claims of the type rescue them, or run CALL mq_rescue_expired(NULL)'));

            WHEN 'stuck_groups' THEN
                CALL imq_stuck_groups(NULL, v_detail);
                SELECT COUNT(*), COALESCE(CONCAT('groups of ', MIN(j.type), ' have ready messages that no claim finds',
                    '; to repair them: CALL mq_rescue_expired(', QUOTE(MIN(j.type)), ')'), 'none')
                INTO v_value, v_detail
                FROM JSON_TABLE(COALESCE(v_detail, '[]'), '$[*]' COLUMNS (type varchar(200) CHARACTER SET utf8mb4 PATH '$[0]')) AS j;
                SET v_verdict = IF(v_value > 0, 'bad', 'ok'), v_unit = 'groups';

            WHEN 'stopped_groups' THEN
                SELECT COUNT(DISTINCT m.type, m.group_key), MIN(m.id) INTO v_value, v_id
                FROM (
                    SELECT e.id FROM mq_queue AS q STRAIGHT_JOIN mq_dead AS e FORCE INDEX (dead_age) ON e.type = q.type
                    WHERE q.dead_stops_group LIMIT 10000
                ) AS k
                STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = k.id AND m.group_key IS NOT NULL;
                SELECT COALESCE(MAX(CONCAT('dead letter ', m.id, ' stops the group ', QUOTE(m.group_key), ' of ', m.type,
                    '; CALL mq_redrive(', m.id, ') retries it, CALL mq_cancel(', m.id, ') deletes it')), 'none')
                INTO v_detail
                FROM mq_message AS m WHERE m.id = v_id;
                SET v_verdict = IF(v_value > 0, 'warn', 'ok'), v_unit = 'groups';

            WHEN 'dead_dedup_keys' THEN
                SELECT COUNT(*), MIN(m.id) INTO v_value, v_id
                FROM (SELECT id FROM mq_dead FORCE INDEX (PRIMARY) ORDER BY id LIMIT 10000) AS k
                STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = k.id AND m.dedup_key IS NOT NULL;
                SELECT COALESCE(MAX(CONCAT('dead letter ', m.id, ' of ', m.type, ' holds the dedup_key ', QUOTE(m.dedup_key),
                    ': mq_send_message with this key sends nothing; CALL mq_redrive(', m.id, ') retries it, ',
                    'CALL mq_cancel(', m.id, ') deletes it')), 'none')
                INTO v_detail
                FROM mq_message AS m WHERE m.id = v_id;
                SET v_verdict = IF(v_value > 0, 'warn', 'ok'), v_unit = 'keys';

            WHEN 'areas' THEN
                CALL imq_area_health(v_checks);

            WHEN 'changed_objects' THEN
                CALL imq_object_fingerprint(v_fingerprints);
                SELECT COUNT(*), COALESCE(CONCAT('missing or changed by hand: ', GROUP_CONCAT(i.name ORDER BY i.name SEPARATOR ', '),
                    '; run the installation again'), 'none')
                INTO v_value, v_detail
                FROM mq_installed AS i
                LEFT JOIN JSON_TABLE(v_fingerprints, '$[*]' COLUMNS (name varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
                    fingerprint char(64) CHARACTER SET ascii PATH '$[1]')) AS f ON f.name = i.name
                WHERE i.kind = 'procedure' AND NOT i.fingerprint <=> f.fingerprint;
                SET v_verdict = IF(v_value > 0, 'bad', 'ok'), v_unit = 'objects';

            WHEN 'missing_indexes' THEN
                SELECT COUNT(*), COALESCE(CONCAT('missing or ignored: ', GROUP_CONCAT(i.name ORDER BY i.name SEPARATOR ', '),
                    '; create it as in the migrations'), 'none')
                INTO v_value, v_detail
                FROM mq_installed AS i
                -- Not IN: MariaDB would search the catalog for each name, and would find none.
                LEFT JOIN (
                    SELECT DISTINCT CONCAT(table_name, '.', index_name) AS name
                    FROM information_schema.statistics
                    WHERE table_schema = DATABASE() /*M! AND ignored = 'NO' */ /*!80000 AND is_visible = 'YES' */
                ) AS s ON s.name = i.name
                WHERE i.kind = 'index' AND s.name IS NULL;
                SET v_verdict = IF(v_value > 0, 'bad', 'ok'), v_unit = 'indexes';

            WHEN 'durability' THEN
                SET v_value = @@GLOBAL.innodb_flush_log_at_trx_commit = 1 AND (@@GLOBAL.log_bin = 0 OR @@GLOBAL.sync_binlog = 1),
                    v_verdict = IF(v_value, 'ok', 'warn'), v_unit = 'flag', v_detail = CONCAT('innodb_flush_log_at_trx_commit ',
                        @@GLOBAL.innodb_flush_log_at_trx_commit, ', sync_binlog ', @@GLOBAL.sync_binlog,
                        IF(v_value, '', ': a crash can lose messages and restore finished ones; set both to 1'));

            WHEN 'binary_log' THEN
                SET v_value = @@GLOBAL.log_bin = 0 OR @@GLOBAL.binlog_format <> 'STATEMENT',
                    v_verdict = IF(v_value, 'ok', 'bad'), v_unit = 'flag', v_detail = IF(@@GLOBAL.log_bin = 0, 'off',
                        CONCAT('binlog_format ', @@GLOBAL.binlog_format, IF(v_value, '',
                            ': a claim takes the rows that are unlocked, so replicas would differ; set it to ROW')));

            WHEN 'max_allowed_packet' THEN
                SET v_value = @@GLOBAL.max_allowed_packet, v_verdict = IF(v_value < 17825792, 'warn', 'ok'), v_unit = 'bytes',
                    v_detail = IF(v_value < 17825792, 'too small for bodies of 16 MiB, which are sent in one packet; set it to 64 MiB',
                        'enough for the longest body');
            END CASE;
        END;
        IF v_unit IS NOT NULL THEN
            SET v_checks = JSON_ARRAY_APPEND(v_checks, '$', JSON_ARRAY(v_name, v_verdict, v_value, v_unit, v_detail));
        END IF;
    END WHILE;

    SELECT j.name, j.verdict, j.value AS measured, j.unit, j.detail
    FROM JSON_TABLE(v_checks, '$[*]' COLUMNS (n FOR ORDINALITY, name varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
        verdict varchar(10) CHARACTER SET utf8mb4 PATH '$[1]', value double PATH '$[2]',
        unit varchar(200) CHARACTER SET utf8mb4 PATH '$[3]', detail longtext CHARACTER SET utf8mb4 PATH '$[4]')) AS j
    ORDER BY j.n;
END
