-- grants: which role may call which procedure of this area and read which table.

EXECUTE PROCEDURE imq_grant_to('mq_consumer', 'report_consumer list_consumers throughput');
EXECUTE PROCEDURE imq_grant_to('mq_operator', 'list_consumers throughput');
EXECUTE PROCEDURE imq_grant_to('mq_viewer', 'list_consumers throughput');
