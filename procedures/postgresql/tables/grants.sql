-- grants: which role may call which function of this area and read which table.

-- After a restore tables have new oids: find the polling tables by their names.
UPDATE mq.polled
SET table_id = coalesce(mq_internal.relation_of(table_schema, table_name), table_id), queue_id = 'mq.polled'::regclass
WHERE queue_id <> 'mq.polled'::regclass;

DO $$
BEGIN
    PERFORM mq_internal.grant_to('mq_consumer',
        'claim_rows finish_rows extend_rows release_rows peek_rows list_polling_tables',
        'my_polled_row');
    PERFORM mq_internal.grant_to('mq_operator',
        'adopt_table unadopt_table extend_rows release_rows redrive_row redrive_rows peek_rows list_polling_tables',
        'my_polled_row polled_batch polled_row');
    PERFORM mq_internal.grant_to('mq_viewer', 'list_polling_tables');
    -- Functions that run with the caller's rights call these. They do nothing with a table on which the caller has no right.
    PERFORM mq_internal.grant_to('mq_consumer mq_operator',
        'operator_of polled_need require_index polled_settings open_polled polled_shape lock_polled drop_polled_batch
         find_rows write_rows fail_rows forget_rows put_back_rows');
    PERFORM mq_internal.grant_to('mq_consumer',
        'take_due take_new due_rows gather_rows pick_rows pick_lost settled_place polled_marks forget_gone hold_rows
         move_polled');
    PERFORM mq_internal.grant_to('mq_operator',
        'find_one_column column_without_equality require_status require_distinct_rows add_polled drop_polled redrive_polled
         revive_rows');
END
$$;
