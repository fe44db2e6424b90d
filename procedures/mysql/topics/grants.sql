-- grants: which role may call which procedure of this area and read which table.

-- For the procedures.
GRANT SELECT, INSERT, DELETE ON mq_binding TO 'mq_owner'@'localhost';

CALL imq_grant_to('mq_producer', 'list_bindings publish publish_with', '');
CALL imq_grant_to('mq_operator', 'bind_topic unbind_topic list_bindings', '');
CALL imq_grant_to('mq_viewer', 'list_bindings', '');
