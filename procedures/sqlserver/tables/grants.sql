-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.adopt_table TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.unadopt_table TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.claim_rows TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.finish_rows TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.extend_rows TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.release_rows TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.redrive_row TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.redrive_rows TO mq_operator;
GRANT EXECUTE ON OBJECT::mq.peek_rows TO mq_operator, mq_consumer;
GRANT EXECUTE ON OBJECT::mq.list_polling_tables TO mq_operator, mq_consumer, mq_viewer;
GRANT SELECT ON OBJECT::mq.polled_batch TO mq_operator;
GRANT SELECT ON OBJECT::mq.polled_row TO mq_operator;
