-- grants: which role may call which procedure and read which view. mq_owner gets the rights that the procedures need.
-- Arguments:   none; run after every change of a procedure, because DROP PROCEDURE also drops its grants
-- Returns:     nothing
-- Errors:      none
-- Transaction: each statement commits
-- Example:     GRANT mq_producer TO shop;
--
-- MySQL grants procedures one by one. The runner compares the grants with this list line by line.

-- A dump contains no accounts: if they are missing, this needs CREATE USER.
CREATE USER IF NOT EXISTS 'mq_owner'@'localhost' /*!80000 IDENTIFIED WITH caching_sha2_password
    AS '$A$005$THISISACOMBINATIONOFINVALIDSALTANDPASSWORDTHATMUSTNEVERBRBEUSED' */ ACCOUNT LOCK;
CREATE ROLE IF NOT EXISTS mq_producer;
CREATE ROLE IF NOT EXISTS mq_consumer;
CREATE ROLE IF NOT EXISTS mq_operator;
CREATE ROLE IF NOT EXISTS mq_viewer;

GRANT SELECT ON mq_installed TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE ON mq_queue TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_queue_group TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE ON mq_limited TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_message TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_dedup TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_ready TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_delayed TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_batch TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_dead TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_result TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_archive TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_mark TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_ring TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_grouped TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_group_lock TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_bucket TO 'mq_owner'@'localhost';
GRANT SELECT, UPDATE ON mq_stripe TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_allowed TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_polled TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_polled_batch TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_polled_row TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_polled_mark TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE ON mq_counter TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_feed TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_feed_consumer TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_watched TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_subscription TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_schedule TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, DELETE ON mq_binding TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_consumer TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_report TO 'mq_owner'@'localhost';
GRANT SELECT, SHOW VIEW ON mq_message_state TO 'mq_owner'@'localhost';
GRANT SELECT, SHOW VIEW ON mq_message_overview TO 'mq_owner'@'localhost';

-- An operator repairs with batch keys. A viewer gets nothing with which a message can be finished, and no bodies.
GRANT SELECT ON mq_message_state TO mq_operator;
GRANT SELECT ON mq_message_overview TO mq_operator, mq_viewer;
GRANT SELECT ON mq_message TO mq_operator;
GRANT SELECT ON mq_ready TO mq_operator, mq_viewer;
GRANT SELECT ON mq_delayed TO mq_operator, mq_viewer;
GRANT SELECT ON mq_batch TO mq_operator;
GRANT SELECT ON mq_dead TO mq_operator, mq_viewer;
GRANT SELECT ON mq_grouped TO mq_operator, mq_viewer;
GRANT SELECT ON mq_group_lock TO mq_operator;
GRANT SELECT ON mq_archive TO mq_operator;
GRANT SELECT ON mq_mark TO mq_operator;
GRANT SELECT ON mq_queue TO mq_operator;
GRANT SELECT ON mq_queue_group TO mq_operator;
GRANT SELECT ON mq_polled_batch TO mq_operator;
GRANT SELECT ON mq_polled_row TO mq_operator;
-- The view runs with its caller's rights: on MySQL, joins in a view with its owner's rights fail for callers with roles.
GRANT SELECT (id, run_at, created_at, priority, sent_run_at, type, group_key, dedup_key, source) ON mq_message TO mq_viewer;
GRANT SELECT (claimed_at, lease_until, type, reader, items) ON mq_batch TO mq_viewer;
GRANT SELECT (id, completed_at, created_at, priority, attempts, type, group_key, dedup_key, source, reader) ON mq_archive TO mq_viewer;

-- The procedures read from the server's grant tables which accounts may use a user's table: names and rights, no
-- passwords. If the installing account cannot grant this, a polling table or a feed works only for the user name that
-- created it; see the guide.
DROP PROCEDURE IF EXISTS mq_grant_more;

DELIMITER //

CREATE PROCEDURE mq_grant_more()
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    DECLARE v_grant text CHARACTER SET utf8mb4;
    DECLARE v_end tinyint DEFAULT 0;
    -- For the triggers of watched tables, which a dump contains.
    DECLARE c_watched CURSOR FOR
        SELECT DISTINCT CONCAT('GRANT SELECT, TRIGGER ON `', REPLACE(event_object_schema, '`', '``'), '`.`',
            REPLACE(event_object_table, '`', '``'), '` TO ''mq_owner''@''localhost''')
        FROM information_schema.triggers
        WHERE trigger_schema = DATABASE() AND definer = 'mq_owner@localhost' AND action_statement LIKE '%imq\_send\_changes(%';
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = 1;
    DECLARE CONTINUE HANDLER FOR 1044, 1045, 1142, 1143, 1227 BEGIN END;
    OPEN c_watched;
    FETCH c_watched INTO v_grant;
    WHILE NOT v_end DO
        SET @mq_statement = v_grant;
        PREPARE mq_statement FROM @mq_statement;
        EXECUTE mq_statement;
        DEALLOCATE PREPARE mq_statement;
        FETCH c_watched INTO v_grant;
    END WHILE;
    CLOSE c_watched;
    GRANT SELECT (host, user, select_priv, update_priv, delete_priv, trigger_priv /*M! , is_role */) ON mysql.user TO 'mq_owner'@'localhost';
    GRANT SELECT (host, db, user, select_priv, update_priv, delete_priv, trigger_priv) ON mysql.db TO 'mq_owner'@'localhost';
    GRANT SELECT (host, db, user, table_name, table_priv) ON mysql.tables_priv TO 'mq_owner'@'localhost';
    /*M! GRANT SELECT (host, user, role) ON mysql.roles_mapping TO 'mq_owner'@'localhost'; */
    /*!80000 GRANT SELECT (from_host, from_user, to_host, to_user) ON mysql.role_edges TO 'mq_owner'@'localhost'; */
    -- For transaction_level, which reads the isolation level of one transaction there.
    /*M! GRANT PROCESS ON *.* TO 'mq_owner'@'localhost'; */
    /*!80016 GRANT SELECT ON performance_schema.events_transactions_current TO 'mq_owner'@'localhost'; */
END//

DELIMITER ;

CALL mq_grant_more();
DROP PROCEDURE mq_grant_more;

-- On MySQL even the definer of a procedure needs the right to call it. A caller also needs the right on each procedure
-- that is called with the caller's rights; these procedures check the account's rights themselves.
GRANT EXECUTE ON PROCEDURE imq_raise_error TO 'mq_owner'@'localhost', mq_consumer, mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE imq_require_name TO 'mq_owner'@'localhost', mq_consumer, mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE imq_require_range TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_require_key TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_transaction_level TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_require_read_committed TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_join_call TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_outside_trigger TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_leave_call TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_begin_call TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_end_call TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_undo_call TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_reader_name TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_read_failures TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_split_names TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_find_table TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_find_columns TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_row_json TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_find_feed TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_feed_columns TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_lower_mark TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_issue_tickets TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_free_groups TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_put_back TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_require_topic TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_lock_bindings TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_topic_path TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_require_headers TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_require_message TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_send_one TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_lock_key TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_change_message TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_leave_place TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_delete_results TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_cron_value TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_read_cron_field TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_read_cron TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_zone_minutes TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_find_change TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_next_day TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_next_minute TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_next_in_day TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_next_time TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_require_zone TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_last_lives TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_send_occurrence TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_send_due TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_delete_messages TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_complete_messages TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_fail_messages TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_count_types TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_estimate TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_stats_of_one TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_stats_of_all TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_ids_of_group TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_stuck_groups TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_rescue TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_tokens TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_allowance TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_spend TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_has_room TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_drop_locks TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_group_tokens TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_put_off TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_take_group TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_take_groups TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_add_lone TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_clean_buckets TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_spend_groups TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_hurry_groups TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_promote TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_pick_grouped TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_pick TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_delete_ready TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_read_tickets TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_pick_heads TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_take_heads TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_drop_tickets TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_lock_ready TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_renew_marks TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_take_ring TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_read_lanes TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_take_lanes TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_take_rounds TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_pick_fair TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_move_ready TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_find_ready TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_add_queue TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_group_limits TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_next_due TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_save_position TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_claim TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_no_messages TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_hold TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_leave_batch TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_drop_batch TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_remove_ready TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_check_transactions TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_check_settings TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_erase_new TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_erase TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_erase_archived TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_object_fingerprint TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_send_changes TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_find_watched TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_require_actions TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_run TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_find_one_column TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_require_rights TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_column_without_equality TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_require_index TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_require_distinct_rows TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_require_order TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_require_status TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_polled_shape TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_lock_polled TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_drop_polled_batch TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_pick_rows TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_write_rows TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_fail_rows TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_take_due TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_feed_settings TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_use_feed TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_lock_feed TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_move_feed TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_add_feed TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_show_feeds TO 'mq_owner'@'localhost', mq_consumer, mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE imq_add_watched TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_require_use TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_use_polled TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_polled_settings TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_read_columns TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_key_literals TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_row_condition TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_missing_index TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_settle_rows TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_run_template TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE imq_list_rows TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_open_claim TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_hold_due TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_free_rows TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_held_copies TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_add_claims TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_settled_place TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_count_active TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_pick_lost TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_claimed_rows TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_seal_claim TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE imq_add_polled TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_open_retry TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_revive_rows TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_open_release TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_drop_polled TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE imq_count_polled TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_forget_reports TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_add_throughput TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE imq_save_report TO 'mq_owner'@'localhost';

GRANT EXECUTE ON PROCEDURE mq_send TO 'mq_owner'@'localhost', mq_producer;
GRANT EXECUTE ON PROCEDURE mq_send_message TO 'mq_owner'@'localhost', mq_producer;
GRANT EXECUTE ON PROCEDURE mq_send_quietly TO 'mq_owner'@'localhost', mq_producer;
GRANT EXECUTE ON PROCEDURE mq_send_message_quietly TO 'mq_owner'@'localhost', mq_producer;
GRANT EXECUTE ON PROCEDURE mq_send_batch TO 'mq_owner'@'localhost', mq_producer;
GRANT EXECUTE ON PROCEDURE mq_get_message TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_claim_batch TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_claim_wraparound TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_take_batch TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_complete TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_complete_batch TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_fail TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_finish_batch TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_release_batch TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_extend_lease TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_rescue_expired TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_wait_for_message TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_cancel TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_redrive TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_purge TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_purge_archive TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_set_queue TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_set_group TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_pause TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_resume TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_queue_stats TO 'mq_owner'@'localhost', mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_queue_health TO 'mq_owner'@'localhost', mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_installed_files TO 'mq_owner'@'localhost', mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_peek TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_list_queues TO 'mq_owner'@'localhost', mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_list_errors TO 'mq_owner'@'localhost', mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_find_messages TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_adopt_table TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_release_table TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_claim_rows TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_finish_rows TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_extend_rows TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_release_rows TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_retry_rows TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_peek_rows TO 'mq_owner'@'localhost', mq_operator, mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_list_tables TO 'mq_owner'@'localhost', mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_advance_sequence TO 'mq_owner'@'localhost', mq_producer;
GRANT EXECUTE ON PROCEDURE mq_create_feed TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_drop_feed TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_publish_feed TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_fetch_feed TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_advance_feed TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_rewind_feed TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_feed_stats TO 'mq_owner'@'localhost', mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_watch_table TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_unwatch_table TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_subscribe TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_unsubscribe TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_list_subscriptions TO 'mq_owner'@'localhost', mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_set_result TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_get_result TO 'mq_owner'@'localhost', mq_operator, mq_consumer, mq_producer;
GRANT EXECUTE ON PROCEDURE mq_bind_topic TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_unbind_topic TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_list_bindings TO 'mq_owner'@'localhost', mq_operator, mq_producer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_publish TO 'mq_owner'@'localhost', mq_producer;
GRANT EXECUTE ON PROCEDURE mq_set_schedule TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_drop_schedule TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_list_schedules TO 'mq_owner'@'localhost', mq_operator, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_run_schedule TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_next_occurrence TO 'mq_owner'@'localhost', mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_report_consumer TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_list_consumers TO 'mq_owner'@'localhost', mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON PROCEDURE mq_throughput TO 'mq_owner'@'localhost', mq_operator, mq_consumer, mq_viewer;
