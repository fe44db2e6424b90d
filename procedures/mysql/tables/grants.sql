-- grants: which role may call which procedure of this area and read which table.

-- For the procedures.
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_polled TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_polled_batch TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_polled_row TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_polled_mark TO 'mq_owner'@'localhost';

CALL imq_grant_to('mq_consumer', 'claim_rows finish_rows extend_rows release_rows peek_rows list_polling_tables', '');
CALL imq_grant_to('mq_operator',
    'adopt_table unadopt_table extend_rows release_rows redrive_row redrive_rows peek_rows list_polling_tables',
    'polled_batch polled_row');
CALL imq_grant_to('mq_viewer', 'list_polling_tables', '');

-- Procedures that run with the caller's rights call these. They check the account's rights themselves.
CALL imq_grant_to('mq_consumer mq_operator',
    'polled_shape drop_polled_batch write_rows fail_rows key_literals row_condition missing_index settle_rows',
    '');
CALL imq_grant_to('mq_consumer',
    'pick_rows take_due list_rows open_claim hold_due free_rows held_copies add_claims settled_place count_active
     pick_lost claimed_rows seal_claim',
    '');
CALL imq_grant_to('mq_operator',
    'find_one_column column_without_equality require_index require_distinct_rows require_order require_status add_polled open_retry
     redrive_polled revive_rows open_release drop_polled',
    '');
