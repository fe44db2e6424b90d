-- grants: which role may call which function of this area and read which table.

DO $$
BEGIN
    PERFORM mq_internal.grant_to('mq_operator', 'watch_table unwatch_table subscribe unsubscribe list_subscriptions');
    PERFORM mq_internal.grant_to('mq_viewer', 'list_subscriptions');
    -- Functions that run with the caller's rights call these. They do nothing with a table on which the caller has no right.
    PERFORM mq_internal.grant_to('mq_operator',
        'add_watched drop_watched find_watched is_watched labelled_table add_subscriptions drop_subscriptions
         primary_key require_actions report_changes');
END
$$;
