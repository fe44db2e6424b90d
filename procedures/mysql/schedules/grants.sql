-- grants: which role may call which procedure of this area and read which table.

-- For the procedures.
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_schedule TO 'mq_owner'@'localhost';

CALL imq_grant_to('mq_producer', 'next_occurrence', '');
CALL imq_grant_to('mq_consumer', 'next_occurrence', '');
CALL imq_grant_to('mq_operator', 'set_schedule drop_schedule list_schedules run_schedule next_occurrence', '');
CALL imq_grant_to('mq_viewer', 'list_schedules next_occurrence', '');
