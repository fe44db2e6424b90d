-- grants: which role may call which function of this area and read which table.

DO $$
BEGIN
    PERFORM mq_internal.grant_to('mq_producer', 'next_occurrence');
    PERFORM mq_internal.grant_to('mq_consumer', 'next_occurrence');
    PERFORM mq_internal.grant_to('mq_operator',
        'set_schedule drop_schedule list_schedules run_schedule next_occurrence');
    PERFORM mq_internal.grant_to('mq_viewer', 'list_schedules next_occurrence');
END
$$;
