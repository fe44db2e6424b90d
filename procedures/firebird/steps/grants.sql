-- grants: which role may call which procedure of this area and read which table.

EXECUTE PROCEDURE imq_grant_to('mq_consumer', 'save_step set_progress get_steps snooze list_cancelled');
EXECUTE PROCEDURE imq_grant_to('mq_operator', 'list_steps');
