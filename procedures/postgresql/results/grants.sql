-- grants: which role may call which function of this area and read which table.

DO $$
BEGIN
    PERFORM mq_internal.grant_to('mq_producer', 'get_result');
    PERFORM mq_internal.grant_to('mq_consumer', 'set_result get_result');
    PERFORM mq_internal.grant_to('mq_operator', 'get_result');
END
$$;
