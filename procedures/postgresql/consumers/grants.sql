-- grants: which role may call which function of this area and read which table.

DO $$
BEGIN
    PERFORM mq_internal.grant_to('mq_consumer', 'report_consumer list_consumers throughput');
    PERFORM mq_internal.grant_to('mq_operator', 'list_consumers throughput');
    PERFORM mq_internal.grant_to('mq_viewer', 'list_consumers throughput');
END
$$;
