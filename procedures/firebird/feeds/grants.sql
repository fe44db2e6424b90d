-- grants: which role may call which procedure of this area and read which table.

EXECUTE PROCEDURE imq_grant_to('mq_producer', 'advance_sequence');
EXECUTE PROCEDURE imq_grant_to('mq_consumer', 'publish_feed fetch_feed advance_feed list_feeds');
EXECUTE PROCEDURE imq_grant_to('mq_operator', 'create_feed drop_feed rewind_feed list_feeds');
EXECUTE PROCEDURE imq_grant_to('mq_viewer', 'list_feeds');
