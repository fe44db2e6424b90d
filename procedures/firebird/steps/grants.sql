-- grants: which role may call which procedure of this area and read which table.

EXECUTE PROCEDURE imq_grant_to('mq_consumer', 'save_step get_steps snooze');
EXECUTE PROCEDURE imq_grant_to('mq_operator', 'list_steps');
