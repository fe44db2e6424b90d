-- grants: which role may call which procedure of this area and read which table.

GRANT EXECUTE ON OBJECT::mq.send TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.send_message TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.send_with TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.send_batch TO mq_producer;
GRANT EXECUTE ON OBJECT::mq.get_message TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.claim_batch TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.claim_any TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.take_batch TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.complete TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.complete_batch TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.fail TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.dead_letter TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.count_attempt TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.finish_batch TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.finish_messages TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.release_batch TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.extend_lease TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.rescue_expired TO mq_consumer, mq_operator;
GRANT EXECUTE ON OBJECT::mq.wait_for_message TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.wait_for_any TO mq_consumer;
GRANT EXECUTE ON OBJECT::mq.find_queues TO mq_operator, mq_consumer, mq_viewer;
-- An operator repairs with batch keys. A viewer gets nothing with which a message can be finished, and no bodies.
GRANT SELECT ON OBJECT::mq.message TO mq_operator;
GRANT SELECT ON OBJECT::mq.ready TO mq_operator, mq_viewer;
GRANT SELECT ON OBJECT::mq.delayed TO mq_operator, mq_viewer;
GRANT SELECT ON OBJECT::mq.batch TO mq_operator;
GRANT SELECT ON OBJECT::mq.dead TO mq_operator, mq_viewer;
GRANT SELECT ON OBJECT::mq.grouped TO mq_operator, mq_viewer;
GRANT SELECT ON OBJECT::mq.group_lock TO mq_operator;
GRANT SELECT ON OBJECT::mq.archive TO mq_operator;
GRANT SELECT ON OBJECT::mq.mark TO mq_operator;
GRANT SELECT ON OBJECT::mq.queue TO mq_operator;
GRANT SELECT ON OBJECT::mq.queue_group TO mq_operator;
GRANT SELECT ON OBJECT::mq.claimed TO mq_operator;
GO
-- To call a procedure that declares a variable of one of these types, a user needs a right on the type, which gives no
-- access to data. The statements are dynamic, because Babelfish cannot parse them; it does not need these rights.
IF SERVERPROPERTY('BabelfishVersion') IS NULL
BEGIN
    EXEC (N'GRANT EXECUTE ON TYPE::mq.items TO mq_producer, mq_consumer, mq_operator');
    EXEC (N'GRANT EXECUTE ON TYPE::mq.pieces TO mq_consumer, mq_operator, mq_viewer');
    EXEC (N'GRANT EXECUTE ON TYPE::mq.places TO mq_producer, mq_consumer, mq_operator');
    EXEC (N'GRANT EXECUTE ON TYPE::mq.failures TO mq_consumer, mq_operator');
END;
