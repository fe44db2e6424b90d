-- grants: which role may call which procedure of this area and read which table.

GRANT SELECT ON mq_message_state TO VIEW mq_message_overview;
-- isql grants in a transaction of its own, and the next statement must see what it did.
COMMIT;

EXECUTE PROCEDURE imq_grant_to('mq_producer', 'cancel_key get_state queue_stats version');
EXECUTE PROCEDURE imq_grant_to('mq_consumer', 'get_state queue_stats installed_files version');
EXECUTE PROCEDURE imq_grant_to('mq_operator',
    'cancel cancel_key update_message redrive redrive_all release_consumer purge set_queue set_option drop_queue set_group
     pause resume pause_all resume_all get_state queue_stats queue_health installed_files version peek list_queues list_errors find_messages',
    'message_state message_overview');
EXECUTE PROCEDURE imq_grant_to('mq_viewer',
    'get_state queue_stats queue_health installed_files version list_queues list_errors',
    'message_overview');
