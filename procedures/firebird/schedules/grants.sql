-- grants: which role may call which procedure of this area and read which table.

EXECUTE PROCEDURE imq_grant_to('mq_producer', 'next_occurrence');
EXECUTE PROCEDURE imq_grant_to('mq_consumer', 'next_occurrence');
EXECUTE PROCEDURE imq_grant_to('mq_operator', 'set_schedule drop_schedule list_schedules run_schedule next_occurrence');
EXECUTE PROCEDURE imq_grant_to('mq_viewer', 'list_schedules next_occurrence');
