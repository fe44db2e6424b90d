-- grants: which role may call which procedure of this area and read which table.

-- For the procedures.
GRANT SELECT, INSERT, UPDATE ON mq_counter TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_feed TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_feed_consumer TO 'mq_owner'@'localhost';

CALL imq_grant_to('mq_producer', 'advance_sequence', '');
CALL imq_grant_to('mq_consumer', 'publish_feed fetch_feed advance_feed list_feeds', '');
CALL imq_grant_to('mq_operator', 'create_feed drop_feed rewind_feed list_feeds', '');
CALL imq_grant_to('mq_viewer', 'list_feeds', '');

-- Procedures that run with the caller's rights call these. They check the account's rights themselves.
CALL imq_grant_to('mq_consumer mq_operator', 'find_feed feed_settings show_feeds', '');
CALL imq_grant_to('mq_consumer', 'feed_columns lock_feed move_feed', '');
CALL imq_grant_to('mq_operator', 'add_feed', '');
CALL imq_grant_to('mq_viewer', 'show_feeds', '');
