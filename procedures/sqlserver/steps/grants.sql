-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.save_step TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.set_progress TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.get_steps TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.snooze TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.list_cancelled TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.list_steps TO mq_operator;
