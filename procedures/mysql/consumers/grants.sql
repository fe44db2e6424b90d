-- grants: which role may call which procedure of this area and read which table.

-- For the procedures.
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_consumer TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_report TO 'mq_owner'@'localhost';

CALL imq_grant_to('mq_consumer', 'report_consumer list_consumers throughput', '');
CALL imq_grant_to('mq_operator', 'list_consumers throughput', '');
CALL imq_grant_to('mq_viewer', 'list_consumers throughput', '');
