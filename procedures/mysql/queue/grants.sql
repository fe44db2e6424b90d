-- grants: which role may call which procedure of this area and read which table.

-- For the procedures.
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_queue TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_queue_group TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_limited TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_message TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_dedup TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_ready TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_delayed TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_batch TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_dead TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_result TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_step TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_archive TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_mark TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_ring TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_grouped TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_group_lock TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_bucket TO 'mq_owner'@'localhost';
GRANT SELECT, UPDATE ON mq_stripe TO 'mq_owner'@'localhost';

-- An operator repairs with batch keys. A viewer gets nothing with which a message can be finished, and no bodies.
CALL imq_grant_to('mq_producer', 'send send_message send_with send_batch send_quietly', '');
CALL imq_grant_to('mq_consumer',
    'get_message claim_batch claim_any take_batch complete complete_batch fail dead_letter count_attempt finish_batch
     finish_messages release_batch extend_lease rescue_expired wait_for_message wait_for_any find_queues',
    '');
CALL imq_grant_to('mq_operator',
    'fail dead_letter count_attempt release_batch extend_lease rescue_expired find_queues',
    'message ready delayed batch dead grouped group_lock archive mark queue queue_group');
CALL imq_grant_to('mq_viewer', 'find_queues', 'ready delayed dead grouped');
