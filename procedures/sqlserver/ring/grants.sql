-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.claim_wraparound TO mq_consumer;
