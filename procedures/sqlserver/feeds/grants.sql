-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.advance_sequence TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.create_feed TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.drop_feed TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.publish_feed TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.fetch_feed TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.advance_feed TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.rewind_feed TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_feeds TO mq_operator, mq_consumer, mq_viewer;
