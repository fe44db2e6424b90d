-- grants: which role may call which procedure of this area and read which table.

-- An operator repairs with batch keys. A viewer gets nothing with which a message can be finished, and no bodies.
EXECUTE PROCEDURE imq_grant_to('mq_producer', 'send send_message send_with send_batch');
EXECUTE PROCEDURE imq_grant_to('mq_consumer',
    'get_message claim_batch claim_any take_batch complete complete_batch fail dead_letter count_attempt
     finish_batch finish_messages release_batch extend_lease rescue_expired wait_for_message wait_for_any find_queues');
EXECUTE PROCEDURE imq_grant_to('mq_operator',
    'fail dead_letter count_attempt release_batch extend_lease rescue_expired find_queues',
    'message ready delayed batch dead grouped group_lock archive mark queue queue_group claimed');
EXECUTE PROCEDURE imq_grant_to('mq_viewer', 'find_queues', 'ready delayed dead grouped');
