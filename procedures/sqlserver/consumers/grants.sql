-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.report_consumer TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.list_consumers TO mq_operator, mq_consumer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.throughput TO mq_operator, mq_consumer, mq_viewer;
