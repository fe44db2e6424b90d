-- check_settings: the checks of queue_health on the server's settings.
-- Arguments:   p_checks: a JSON array of [name, verdict, value, unit, detail]
-- Returns:     p_checks, with these checks appended

DROP PROCEDURE IF EXISTS imq_check_settings;
DELIMITER //
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_check_settings(INOUT p_checks longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_value double;
    SET v_value = @@GLOBAL.innodb_flush_log_at_trx_commit = 1 AND (@@GLOBAL.log_bin = 0 OR @@GLOBAL.sync_binlog = 1);
    SET p_checks = JSON_ARRAY_APPEND(p_checks, '$', JSON_ARRAY('durability', IF(v_value, 'ok', 'warn'), v_value, 'flag',
        CONCAT('innodb_flush_log_at_trx_commit ', @@GLOBAL.innodb_flush_log_at_trx_commit, ', sync_binlog ',
            @@GLOBAL.sync_binlog,
            IF(v_value, '', ': a crash can lose messages and restore finished ones; set both to 1'))));

    SET v_value = @@GLOBAL.log_bin = 0 OR @@GLOBAL.binlog_format <> 'STATEMENT';
    SET p_checks = JSON_ARRAY_APPEND(p_checks, '$', JSON_ARRAY('binary_log', IF(v_value, 'ok', 'bad'), v_value, 'flag',
        IF(@@GLOBAL.log_bin = 0, 'off', CONCAT('binlog_format ', @@GLOBAL.binlog_format, IF(v_value, '',
            ': a claim takes the rows that are unlocked, so replicas would differ; set it to ROW')))));

    SET v_value = @@GLOBAL.max_allowed_packet;
    SET p_checks = JSON_ARRAY_APPEND(p_checks, '$', JSON_ARRAY('max_allowed_packet', IF(v_value < 17825792, 'warn', 'ok'),
        v_value, 'bytes', IF(v_value < 17825792, 'too small for bodies of 16 MiB, which are sent in one packet; set it to 64 MiB',
            'enough for the longest body')));
END//
DELIMITER ;
