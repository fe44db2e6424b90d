-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.set_schedule TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.drop_schedule TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_schedules TO mq_operator, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.run_schedule TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.next_occurrence TO mq_operator, mq_consumer, mq_producer, mq_viewer;
