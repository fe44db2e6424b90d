-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.cancel TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.cancel_key TO mq_operator, mq_producer;
GRANT EXECUTE ON OBJECT::mq.update_message TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.release_consumer TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.redrive TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.redrive_all TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.purge TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.set_queue TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.set_option TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.drop_queue TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.set_group TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.pause TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.resume TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.pause_all TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.resume_all TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.get_state TO mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.queue_stats TO mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq_internal.installed_files TO mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.version TO mq_operator, mq_consumer, mq_producer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.queue_health TO mq_operator, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.peek TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_queues TO mq_operator, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.find_messages TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_errors TO mq_operator, mq_viewer;
GRANT SELECT ON OBJECT::mq.message_state TO mq_operator;
GRANT SELECT ON OBJECT::mq.message_overview TO mq_operator, mq_viewer;
