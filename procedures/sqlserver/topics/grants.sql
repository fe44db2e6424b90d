-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.bind_topic TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.unbind_topic TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.list_bindings TO mq_operator, mq_producer, mq_viewer;
GRANT EXECUTE ON OBJECT::mq.publish TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.publish_with TO mq_producer;
