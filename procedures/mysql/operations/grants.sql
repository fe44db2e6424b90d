-- grants: which role may call which procedure of this area and read which table.

-- For the procedures.
GRANT SELECT, SHOW VIEW ON mq_message_state TO 'mq_owner'@'localhost';
GRANT SELECT, SHOW VIEW ON mq_message_overview TO 'mq_owner'@'localhost';

CALL imq_grant_to('mq_producer', 'cancel_key get_state queue_stats version', '');
CALL imq_grant_to('mq_consumer', 'get_state queue_stats installed_files version', '');
CALL imq_grant_to('mq_operator',
    'cancel cancel_key update_message release_consumer redrive redrive_all purge set_queue set_option drop_queue set_group pause resume pause_all resume_all get_state
     queue_stats installed_files version queue_health peek list_queues list_errors find_messages',
    'message_state message_overview');
CALL imq_grant_to('mq_viewer', 'get_state queue_stats installed_files version queue_health list_queues list_errors', 'message_overview');

-- The view runs with its caller's rights: on MySQL, joins in a view with its owner's rights fail for callers with roles.
GRANT SELECT (id, run_at, created_at, priority, sent_run_at, type, group_key, dedup_key, source, cancelled_at) ON mq_message TO mq_viewer;
GRANT SELECT (claimed_at, lease_until, type, consumer, items) ON mq_batch TO mq_viewer;
GRANT SELECT (id, completed_at, created_at, priority, attempts, type, group_key, dedup_key, source, consumer) ON mq_archive TO mq_viewer;
