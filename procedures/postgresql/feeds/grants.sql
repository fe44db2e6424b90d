-- grants: which role may call which function of this area and read which table.

DO $$
BEGIN
    PERFORM mq_internal.grant_to('mq_producer', 'advance_sequence');
    PERFORM mq_internal.grant_to('mq_consumer', 'publish_feed fetch_feed advance_feed list_feeds');
    PERFORM mq_internal.grant_to('mq_operator', 'create_feed drop_feed rewind_feed list_feeds');
    PERFORM mq_internal.grant_to('mq_viewer', 'list_feeds');
    -- Functions that run with the caller's rights call these. They do nothing with a table on which the caller has no right.
    PERFORM mq_internal.grant_to('mq_consumer mq_operator',
        'find_feed feed_settings feed_positions show_feeds sync_column move_consumer');
    PERFORM mq_internal.grant_to('mq_consumer', 'lock_feed move_feed');
    PERFORM mq_internal.grant_to('mq_operator', 'add_feed delete_feed');
    PERFORM mq_internal.grant_to('mq_viewer', 'feed_settings sync_column show_feeds');
END
$$;
