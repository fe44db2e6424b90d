-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.set_result TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.get_result TO mq_operator, mq_consumer, mq_producer;
