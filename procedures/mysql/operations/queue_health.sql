-- queue_health: what hurts queues on this server, with a verdict each.
-- Arguments:   none
-- Returns:     name, verdict (ok, warn or bad), value (NULL: mq_owner may not see it), unit, detail
-- Errors:      none
-- Transaction: reads only; sees other sessions after GRANT PROCESS ON *.* TO 'mq_owner'@'localhost'
-- Example:     CALL mq_queue_health();
--
-- A caller gets one result set: the rows are put together as JSON first. The comments that begin with M! are read by MariaDB
-- only, those that begin with !80000 by MySQL only.

DROP PROCEDURE IF EXISTS mq_queue_health;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_queue_health(
)
SQL SECURITY DEFINER
READS SQL DATA
BEGIN
    DECLARE v_value double;
    DECLARE v_seconds bigint;
    DECLARE v_detail, v_checks, v_fingerprints longtext CHARACTER SET utf8mb4;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_no_right varchar(200) CHARACTER SET utf8mb4
        DEFAULT 'mq_owner may not see it: GRANT PROCESS ON *.* TO ''mq_owner''@''localhost''';
    SET v_checks = '[]';

    -- Whatever keeps an old snapshot keeps every deleted message from being cleaned up.
    BEGIN
        DECLARE EXIT HANDLER FOR 1227
            SET v_checks = JSON_ARRAY_APPEND(v_checks, '$',
                JSON_ARRAY('oldest_transaction', 'warn', NULL, 'seconds', v_no_right));
        SET v_value = 0, v_detail = 'no other transaction is open';
        BEGIN
            DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
            -- trx_started is in the time zone of the server's machine, whatever the session has, and in whole seconds.
            SELECT TIMESTAMPDIFF(MICROSECOND, t.trx_started, CONVERT_TZ(v_now, '+00:00', 'SYSTEM')) / 1e6,
                IF(t.trx_mysql_thread_id = 0,
                    'a prepared transaction of nobody: XA RECOVER, then XA COMMIT or XA ROLLBACK it',
                    CONCAT('connection ', t.trx_mysql_thread_id, ', user ', COALESCE(p.user, '?'), ', host ',
                        COALESCE(p.host, '?'), ', database ', COALESCE(p.db, 'none'), ', ', COALESCE(p.command, '?'),
                        ' for ', COALESCE(p.time, '?'), ' s',
                        COALESCE(CONCAT(': ', LEFT(REGEXP_REPLACE(t.trx_query, '[[:space:][:cntrl:]]+', ' '), 100)), ''),
                        '; end it with KILL ', t.trx_mysql_thread_id))
            INTO v_value, v_detail
            FROM information_schema.innodb_trx AS t
            LEFT JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id
            WHERE t.trx_mysql_thread_id <> CONNECTION_ID()
            ORDER BY t.trx_started
            LIMIT 1;
        END;
        SET v_checks = JSON_ARRAY_APPEND(v_checks, '$', JSON_ARRAY('oldest_transaction',
            CASE WHEN v_value > 3600 THEN 'bad' WHEN v_value > 300 THEN 'warn' ELSE 'ok' END, v_value, 'seconds', v_detail));
    END;

    BEGIN
        DECLARE EXIT HANDLER FOR 1227
            SET v_checks = JSON_ARRAY_APPEND(v_checks, '$',
                JSON_ARRAY('history_length', 'warn', NULL, 'transactions', v_no_right));
        SELECT /*M! MAX(variable_value) INTO v_value
        FROM information_schema.global_status WHERE variable_name = 'INNODB_HISTORY_LIST_LENGTH' */
        /*!80000 MAX(count) INTO v_value
        FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len' AND status = 'enabled' */;
        SET v_checks = JSON_ARRAY_APPEND(v_checks, '$', JSON_ARRAY('history_length',
            CASE WHEN v_value > 1000000 THEN 'bad' WHEN v_value > 100000 THEN 'warn' ELSE 'ok' END, v_value, 'transactions',
            IF(v_value > 100000, 'what was deleted is not cleaned up: end old transactions; set innodb_purge_threads higher',
                'what was deleted is cleaned up soon')));
    END;

    SELECT COUNT(*), COALESCE(TIMESTAMPDIFF(SECOND, MIN(b.lease_until), v_now), 0) INTO v_value, v_seconds
    FROM (SELECT lease_until FROM mq_batch WHERE lease_until <= v_now LIMIT 10000) AS b;
    SET v_checks = JSON_ARRAY_APPEND(v_checks, '$', JSON_ARRAY('expired_leases',
        CASE WHEN v_seconds > 3600 THEN 'bad' WHEN v_seconds > 60 THEN 'warn' ELSE 'ok' END, v_value, 'claims',
        IF(v_value = 0, 'none', CONCAT('the oldest for ', v_seconds,
            ' s; claims of the type rescue them, or CALL mq_rescue_expired(NULL)'))));

    CALL mq_stuck_groups(NULL, v_detail);
    SELECT COUNT(*), COALESCE(CONCAT('groups with due messages that no claim finds, the first ones in ', MIN(j.type),
        '; CALL mq_rescue_expired(', QUOTE(MIN(j.type)), ') lets them go on'), 'none')
    INTO v_value, v_detail
    FROM JSON_TABLE(COALESCE(v_detail, '[]'), '$[*]' COLUMNS (type varchar(200) CHARACTER SET utf8mb4 PATH '$[0]')) AS j;
    SET v_checks = JSON_ARRAY_APPEND(v_checks, '$', JSON_ARRAY('stuck_groups', IF(v_value > 0, 'bad', 'ok'), v_value, 'groups', v_detail));

    CALL mq_object_fingerprint(v_fingerprints);
    SELECT COUNT(*), COALESCE(CONCAT('missing or changed by hand: ', GROUP_CONCAT(i.name ORDER BY i.name SEPARATOR ', '),
        '; run the installation again'), 'all procedures are as installed')
    INTO v_value, v_detail
    FROM mq_installed AS i
    LEFT JOIN JSON_TABLE(v_fingerprints, '$[*]' COLUMNS (name varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
        fingerprint char(64) CHARACTER SET ascii PATH '$[1]')) AS f ON f.name = i.name
    WHERE i.kind = 'procedure' AND NOT i.fingerprint <=> f.fingerprint;
    SET v_checks = JSON_ARRAY_APPEND(v_checks, '$', JSON_ARRAY('changed_objects', IF(v_value > 0, 'bad', 'ok'), v_value,
        'objects', v_detail));

    SELECT COUNT(*), COALESCE(CONCAT('missing or ignored: ', GROUP_CONCAT(w.name ORDER BY w.name SEPARATOR ', ')),
        'all there')
    INTO v_value, v_detail
    FROM JSON_TABLE('["mq_queue.PRIMARY", "mq_message.PRIMARY", "mq_dedup.PRIMARY", "mq_ready.PRIMARY", "mq_delayed.PRIMARY",
        "mq_batch.PRIMARY", "mq_batch.batch_lease", "mq_dead.PRIMARY", "mq_dead.dead_age", "mq_archive.PRIMARY",
        "mq_archive.archive_type", "mq_archive.archive_age", "mq_mark.PRIMARY", "mq_mark.mark_newest", "mq_ring.PRIMARY",
        "mq_ring.ring_newest", "mq_grouped.PRIMARY", "mq_group_lock.PRIMARY", "mq_stripe.PRIMARY",
        "mq_counter.PRIMARY", "mq_feed.PRIMARY", "mq_feed.feed_column", "mq_feed_consumer.PRIMARY",
        "mq_watched.PRIMARY", "mq_subscription.PRIMARY"]',
        '$[*]' COLUMNS (name varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS w
    -- Not IN: MariaDB would look for each name in the catalog, and find none.
    LEFT JOIN (
        SELECT DISTINCT CONCAT(table_name, '.', index_name) AS name
        FROM information_schema.statistics
        WHERE table_schema = DATABASE() /*M! AND ignored = 'NO' */ /*!80000 AND is_visible = 'YES' */
    ) AS s ON s.name = w.name
    WHERE s.name IS NULL;
    SET v_checks = JSON_ARRAY_APPEND(v_checks, '$', JSON_ARRAY('missing_indexes', IF(v_value > 0, 'bad', 'ok'), v_value,
        'indexes', v_detail));

    SET v_value = @@GLOBAL.innodb_flush_log_at_trx_commit = 1 AND (@@GLOBAL.log_bin = 0 OR @@GLOBAL.sync_binlog = 1);
    SET v_checks = JSON_ARRAY_APPEND(v_checks, '$', JSON_ARRAY('durability', IF(v_value, 'ok', 'warn'), v_value, 'flag',
        CONCAT('innodb_flush_log_at_trx_commit ', @@GLOBAL.innodb_flush_log_at_trx_commit, ', sync_binlog ',
            @@GLOBAL.sync_binlog,
            IF(v_value, '', ': a crash may lose messages and bring finished ones back; set both to 1'))));

    SET v_value = @@GLOBAL.log_bin = 0 OR @@GLOBAL.binlog_format <> 'STATEMENT';
    SET v_checks = JSON_ARRAY_APPEND(v_checks, '$', JSON_ARRAY('binary_log', IF(v_value, 'ok', 'bad'), v_value, 'flag',
        IF(@@GLOBAL.log_bin = 0, 'off', CONCAT('binlog_format ', @@GLOBAL.binlog_format, IF(v_value, '',
            ': a claim takes what is free at the moment, which a statement cannot repeat; set it to ROW')))));

    SET v_value = @@GLOBAL.max_allowed_packet;
    SET v_checks = JSON_ARRAY_APPEND(v_checks, '$', JSON_ARRAY('max_allowed_packet', IF(v_value < 17825792, 'warn', 'ok'),
        v_value, 'bytes', IF(v_value < 17825792, 'bodies may have 16 MiB and are sent in one packet: set it to 64 MiB',
            'enough for the longest body')));

    SELECT j.name, j.verdict, j.value, j.unit, j.detail
    FROM JSON_TABLE(v_checks, '$[*]' COLUMNS (n FOR ORDINALITY, name varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
        verdict varchar(10) CHARACTER SET utf8mb4 PATH '$[1]', value double PATH '$[2]',
        unit varchar(200) CHARACTER SET utf8mb4 PATH '$[3]', detail longtext CHARACTER SET utf8mb4 PATH '$[4]')) AS j
    ORDER BY j.n;
END//

DELIMITER ;
