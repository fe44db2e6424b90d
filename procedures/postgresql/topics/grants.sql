-- grants: which role may call which function of this area and read which table.

DO $$
BEGIN
    PERFORM mq_internal.grant_to('mq_producer', 'list_bindings publish publish_with');
    PERFORM mq_internal.grant_to('mq_operator', 'bind_topic unbind_topic list_bindings');
    PERFORM mq_internal.grant_to('mq_viewer', 'list_bindings');
    -- Functions that run with the caller's rights call these. They do nothing with a table on which the caller has no right.
    PERFORM mq_internal.grant_to('mq_operator', 'require_topic');
END
$$;
