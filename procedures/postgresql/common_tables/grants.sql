-- grants: which role may call which function of this area and read which table.

DO $$
BEGIN
    -- Functions that run with the caller's rights call these. They do nothing with a table on which the caller has no right.
    PERFORM mq_internal.grant_to('mq_consumer mq_operator',
        'raise_error require_name require_range consumer_name read_outcomes read_object split_names find_table find_columns
         row_json relation_of require_rights',
        'my_pass');
    PERFORM mq_internal.grant_to('mq_operator', 'read_options read_time');
    PERFORM mq_internal.grant_to('mq_viewer', 'raise_error require_name relation_of');
END
$$;
