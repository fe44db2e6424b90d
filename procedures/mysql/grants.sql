-- grants: who may call what. Roles are given procedures and no table; mq_owner, as whom these run, what they need.
-- Arguments:   none; it is run after every change of a procedure, because DROP PROCEDURE takes the rights with it
-- Returns:     nothing
-- Errors:      none
-- Transaction: each statement commits
-- Example:     GRANT mq_producer TO shop;

CREATE ROLE IF NOT EXISTS mq_producer;
CREATE ROLE IF NOT EXISTS mq_consumer;
CREATE ROLE IF NOT EXISTS mq_operator;

GRANT SELECT ON mq_installed TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE ON mq_queue TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_message TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_dedup TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_ready TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_delayed TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_batch TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_dead TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_archive TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_mark TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_ring TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_grouped TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_group_lock TO 'mq_owner'@'localhost';
GRANT SELECT, UPDATE ON mq_stripe TO 'mq_owner'@'localhost';
GRANT SELECT, SHOW VIEW ON mq_message_state TO 'mq_owner'@'localhost';

-- MySQL asks even the definer of a procedure for the right to call it.
GRANT EXECUTE ON PROCEDURE mq_raise_error TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_require_name TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_require_range TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_require_key TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_require_read_committed TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_begin_call TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_end_call TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_undo_call TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_reader_name TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_read_failures TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_split_names TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_find_table TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_find_columns TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_row_json TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_lower_mark TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_issue_tickets TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_free_groups TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_put_back TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_delete_messages TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_settle TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_fail_messages TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_rescue TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_promote TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_pick_ordered TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_pick TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_take_ready TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_claim TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_no_messages TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_hold TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_withdraw TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_drop_batch TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_remove_ready TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_erase TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_erase_archived TO 'mq_owner'@'localhost';
GRANT EXECUTE ON PROCEDURE mq_object_fingerprint TO 'mq_owner'@'localhost';

GRANT EXECUTE ON PROCEDURE mq_send TO 'mq_owner'@'localhost', mq_producer;
GRANT EXECUTE ON PROCEDURE mq_send_message TO 'mq_owner'@'localhost', mq_producer;
GRANT EXECUTE ON PROCEDURE mq_send_batch TO 'mq_owner'@'localhost', mq_producer;
GRANT EXECUTE ON PROCEDURE mq_get_message TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_claim_batch TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_claim_wraparound TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_take_batch TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_complete TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_complete_batch TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_fail TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_finish_batch TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_release_batch TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_extend_lease TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_rescue_expired TO 'mq_owner'@'localhost', mq_consumer, mq_operator;
GRANT EXECUTE ON PROCEDURE mq_wait_for_message TO 'mq_owner'@'localhost', mq_consumer;
GRANT EXECUTE ON PROCEDURE mq_cancel TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_redrive TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_purge TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_purge_archive TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_set_queue TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_pause TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_resume TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_queue_stats TO 'mq_owner'@'localhost', mq_operator, mq_consumer, mq_producer;
GRANT EXECUTE ON PROCEDURE mq_queue_health TO 'mq_owner'@'localhost', mq_operator;
GRANT EXECUTE ON PROCEDURE mq_installed_files TO 'mq_owner'@'localhost', mq_operator, mq_consumer, mq_producer;
GRANT EXECUTE ON PROCEDURE mq_peek TO 'mq_owner'@'localhost', mq_operator;
