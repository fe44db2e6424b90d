-- grants: which role may call which procedure of this area and read which table.

EXECUTE PROCEDURE imq_grant_to('mq_consumer', 'claim_rows finish_rows extend_rows release_rows peek_rows list_polling_tables');
EXECUTE PROCEDURE imq_grant_to('mq_operator',
    'adopt_table unadopt_table extend_rows release_rows redrive_row redrive_rows peek_rows list_polling_tables',
    'polled_batch polled_row');
EXECUTE PROCEDURE imq_grant_to('mq_viewer', 'list_polling_tables');
