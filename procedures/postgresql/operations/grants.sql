-- grants: which role may call which function of this area and read which table.

DO $$
BEGIN
    PERFORM mq_internal.grant_to('mq_producer', 'cancel_key get_state queue_stats version');
    PERFORM mq_internal.grant_to('mq_consumer', 'get_state queue_stats installed_files version');
    PERFORM mq_internal.grant_to('mq_operator',
        'cancel cancel_key update_message release_consumer redrive redrive_all purge set_queue set_option drop_queue
         set_group pause resume pause_all resume_all get_state queue_stats installed_files version queue_health peek
         list_queues list_errors find_messages',
        'message_state message_overview');
    PERFORM mq_internal.grant_to('mq_viewer',
        'get_state queue_stats installed_files version queue_health list_queues list_errors',
        'message_overview');
END
$$;
