-- grants: which role may call which function of this area and read which table.

DO $$
BEGIN
    PERFORM mq_internal.grant_to('mq_consumer', 'save_step set_progress get_steps snooze list_cancelled');
    PERFORM mq_internal.grant_to('mq_operator', 'list_steps');
END
$$;
