-- grants: which role may call which procedure of this area and read which table.

EXECUTE PROCEDURE imq_grant_to('mq_producer', 'list_bindings publish publish_with');
EXECUTE PROCEDURE imq_grant_to('mq_operator', 'bind_topic unbind_topic list_bindings');
EXECUTE PROCEDURE imq_grant_to('mq_viewer', 'list_bindings');
